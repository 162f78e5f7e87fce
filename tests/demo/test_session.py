"""The demo as a whole: alive within seconds, and gone without a trace, however its console ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer
from pgq_tui.demo.session import SERVER, DemoSession, start_demo
from tests.support.databases import ready_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.system

PATIENCE = 60.0
HOLD = """
import sys, time
from pathlib import Path
from pgq_tui.demo.session import start_demo
session = start_demo(Path(sys.argv[1]))
print(session.dsn, *session.child_pids, flush=True)
time.sleep(600)
"""


@pytest.fixture
def demo_home(home: Path) -> Iterator[Path]:
    """Short, unlike pytest's own directories: a socket has to fit into it."""
    directory = Path(tempfile.mkdtemp(prefix="d-", dir=home))
    ready_server(SERVER, directory)
    yield directory
    EmbeddedServer(SERVER, directory).stop()


@pytest.fixture
def demo(demo_home: Path) -> Iterator[DemoSession]:
    session = start_demo(demo_home)
    yield session
    session.stop()


def rows(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return conn.execute(statement).fetchall()


def numbers(dsn: str, statement: str) -> dict[str, int]:
    return dict(rows(dsn, statement))


def processes_of(demo_home: Path, *pids: int) -> list[psutil.Process]:
    """The demo's server and the children, with all their descendants."""
    server = EmbeddedServer(SERVER, demo_home).status().pid
    found = [psutil.Process(pid) for pid in (*pids, server) if pid is not None]
    return found + [child for process in found for child in process.children(recursive=True)]


def none_is_left(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_every_screen_has_life_and_leaving_stops_all_that_was_started(demo: DemoSession, demo_home: Path) -> None:
    charted = rows(demo.dsn, "SELECT min(bucket) < now() - interval '5 minutes' FROM pgq_core.job_stats")
    assert charted == [(True,)]

    def is_alive() -> bool:
        outcomes = numbers(
            demo.dsn, "SELECT outcome, count(*) FROM pgq_core.job_runs WHERE worker_id <> 'history' GROUP BY 1"
        )
        running = rows(demo.dsn, "SELECT count(*) FROM pgq_core.jobs WHERE status = 'running'")[0][0]
        retrying = rows(demo.dsn, "SELECT count(*) FROM pgq_core.jobs WHERE status = 'scheduled' AND attempts > 0")[0][
            0
        ]
        return {"succeeded", "retried", "dead"} <= set(outcomes) and running > 0 and retrying > 0

    eventually(is_alive, timeout=PATIENCE)
    pools = rows(demo.dsn, "SELECT name, wanted, state FROM pgq_core.worker_pools ORDER BY name")
    assert pools == [("images", 1, "ok"), ("mail", 2, "ok"), ("office", 2, "ok")]
    queues = numbers(demo.dsn, "SELECT queue, count(*) FROM pgq_core.job_runs WHERE worker_id <> 'history' GROUP BY 1")
    assert set(queues) <= {"emails", "billing", "images", "reports"}
    eventually(lambda: rows(demo.dsn, "SELECT count(*) FROM shop.outbox")[0][0] > 0, timeout=PATIENCE)
    letters = rows(demo.dsn, "SELECT DISTINCT job_type FROM pgq_core.dead_letter_jobs")
    assert ("sync_to_warehouse",) in letters

    eventually(lambda: len(rows(demo.dsn, "SELECT 1 FROM pgq_core.workers WHERE state = 'running'")) == 5, PATIENCE)
    processes = processes_of(demo_home, *demo.child_pids)
    assert len(processes) > 8

    demo.stop()

    eventually(lambda: none_is_left(processes), timeout=PATIENCE)
    assert not EmbeddedServer(SERVER, demo_home).status().running
    demo.stop()


@pytest.mark.slow
def test_a_console_that_is_killed_leaves_nothing_running(demo_home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(demo_home)], stdout=subprocess.PIPE, text=True) as console:
        assert console.stdout is not None
        dsn, *pids = console.stdout.readline().split()
        eventually(lambda: rows(dsn, "SELECT 1 FROM pgq_core.workers WHERE state = 'running'"), timeout=PATIENCE)
        processes = processes_of(demo_home, *(int(pid) for pid in pids))

        os.kill(console.pid, signal.SIGKILL)

    eventually(lambda: none_is_left(processes), timeout=PATIENCE)


@pytest.mark.slow
def test_a_second_demo_joins_the_first_and_takes_nothing_away(demo: DemoSession, demo_home: Path) -> None:
    second = start_demo(demo_home)
    assert (second.dsn, second.child_pids) == (demo.dsn, ())

    second.stop()

    assert all(psutil.pid_exists(pid) for pid in demo.child_pids)
    assert rows(demo.dsn, "SELECT 1") == [(1,)]


@pytest.mark.slow
def test_the_headless_check_says_what_happened(demo_home: Path) -> None:
    command = [sys.executable, "-m", "pgq_tui.demo", "--seconds", "6", "--home", str(demo_home)]

    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert answer.returncode == 0, answer.stderr
    assert "pool mail: 2 of 2 workers" in answer.stdout
    assert "runs: " in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("stopped in ")
