"""Everything has a limit: each queue in memory, each turn of a loop, each call of a station, each stop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pgq_core
import pgq_tui
from pgq_core import bounded
from pgq_core.job_queue import target
from pgq_core.maintenance import leadership
from pgq_core.service import PeriodicService
from pgq_core.worker import announcement, completer, desk, orphan, producer, runner
from pgq_tui.backend import lane
from pgq_tui.supervisor import question, reconciler, supervisor

ROOT = Path(__file__).parents[2]
UNBOUNDED = {"deque", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"}

QUEUES = {
    "pgq_core/api/intake.py": "requests that wait for one statement, as many as the server has connections",
    "pgq_core/inspector/depth_memory.py": "samples of the last minutes, older ones are dropped",
    "pgq_core/logs.py": "lines up to `capacity`, then they are dropped and counted",
    "pgq_core/worker/completer.py": "outcomes of jobs in hand: nothing is claimed while they cannot be written",
    "pgq_core/worker/desk.py": "one burial for each runner, and starts, which do not wait for a database",
    "pgq_core/worker/executor.py": "claimed jobs, at most one claim ahead",
    "pgq_core/worker/refused.py": "outcomes up to `MOST`, then the others are held too and nothing is claimed",
    "pgq_core/worker/threads.py": "jobs in hand",
}
"""Queues without a `maxlen`, and what bounds them."""
WITHOUT_A_LIMIT = {
    "pgq_core/bench/server.py": "a benchmark's own statements over millions of rows, before the eyes of who started it",
    "pgq_core/worker/transactional.py": "a handler's own statements, which the time limit of its job ends",
}
"""Plain connections whose calls are waited for as long as they take."""
OPENED_BARE = {
    "pgq_core/embedded/server.py": "asks nothing of the server, whose opening has a limit of its own",
}
RUN_TO_THEIR_END = {"pgq_core/bench", "pgq_core/cli", "pgq_tui/demo", "pgq_tui/pictures"}
"""Commands that may use asyncio.run: whoever waits for them sees them, and ends them by Ctrl-C."""


@cache
def sources() -> list[tuple[str, ast.Module]]:
    paths = [path for package in (pgq_core, pgq_tui) for path in sorted(Path(package.__path__[0]).rglob("*.py"))]
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in paths]


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """All calls with the last part of their name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield (node.func.id if isinstance(node.func, ast.Name) else node.func.attr), node


def test_each_queue_in_memory_has_a_bound() -> None:
    found = {
        path
        for path, tree in sources()
        for name, call in calls(tree)
        if name in UNBOUNDED and not any(keyword.arg in {"maxlen", "maxsize"} for keyword in call.keywords)
    }

    assert sorted(found) == sorted(QUEUES)


def test_each_loop_gives_a_silent_turn_up() -> None:
    """The base class has a limit; who sets another one sets a number."""
    given = {
        path: ast.literal_eval(node.value)
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"longest_turn", "self.longest_turn"}
    }

    assert given["pgq_core/service.py"] == PeriodicService.longest_turn
    assert all(0 < seconds <= PeriodicService.longest_turn for seconds in given.values())


def test_each_plain_call_of_the_database_gives_a_silent_server_up() -> None:
    """Nobody can break such a call off from outside."""
    unlimited, bare = set(), set()
    for path, tree in sources():
        for name, call in calls(tree):
            if name == "connect_sync" and any(ast.unparse(word) == "answer_within=0" for word in call.keywords):
                unlimited.add(path)
            if name == "connect" and ast.unparse(call.func) in {"psycopg.connect", "Connection.connect"}:
                bare.add(path)

    assert sorted(unlimited) == sorted(WITHOUT_A_LIMIT)
    assert sorted(bare) == sorted(OPENED_BARE)


@pytest.mark.parametrize(
    ("limit", "longest"),
    [
        (bounded.ANSWER_WITHIN, 60),
        (target.SILENCE, 5),
        (lane.SILENCE, 5),
        (producer.CALL_LIMIT, 60),
        (completer.CALL_LIMIT, 60),
        (desk.CALL_LIMIT, 10),
        (leadership.CALL_LIMIT, 60),
        (reconciler.CALL_LIMIT, 10),
        (question.ANSWER_WITHIN, 10),
        (runner.OPEN_LIMIT, 60),
        (orphan.OrphanBeats.longest_turn, 10),
        (announcement.Announcer.longest_turn, 120),
    ],
)
def test_each_station_gives_a_silent_database_up(limit: float, longest: float) -> None:
    assert 0 < limit <= longest


def test_leaving_waits_for_nothing_that_may_never_end() -> None:
    """asyncio.run waits for every cancelled task, and a statement whose server is silent ends when it likes."""
    found = {
        path
        for path, tree in sources()
        for name, call in calls(tree)
        if name == "run" and isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "asyncio.run"
    }

    assert {path for path in found if not any(path.startswith(f"{place}/") for place in RUN_TO_THEIR_END)} == set()
    assert supervisor.LAST_RESORT + desk.LAST_WORD < 1.0
