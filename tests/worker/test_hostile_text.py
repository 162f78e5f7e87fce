"""Text from jobs is data: no error, result or print may break a write, a log line or a worker."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system

HOSTILE = [
    "[/x]",
    "[red]bold[/red]",
    "\x1b[31mred\x1b[0m",
    "a\x00b",
    "\u202egnp.exe",
    "\ud800 alone",
    "line one\nline two\r\n",
    "%s {x} \\",
    "x" * 1_000_000,
    "",
]


def test_hostile_errors_are_stored_and_logged(database: QueueDatabase, workers: Workers) -> None:
    jobs = {
        database.put("raise", {"python": f"RuntimeError({text!a})"}, max_attempts=1): text
        for text in HOSTILE
        if len(text) < 10_000
    }
    endless = database.put("raise", {"python": "RuntimeError('x' * 1_000_000)"}, max_attempts=1)
    worker = workers.start()

    eventually(lambda: all(database.letter(job_id) for job_id in (*jobs, endless)), timeout=60)

    for job_id, text in jobs.items():
        letter = database.letter(job_id)
        assert letter is not None
        shown = text.replace("\x00", "␀").replace("\ud800", "\ufffd")
        assert letter["last_error"] == (f"RuntimeError: {shown}" if text else "RuntimeError")
    letter = database.letter(endless)
    assert letter is not None
    assert len(letter["last_error"]) < 100_000
    assert "characters cut" in letter["last_error"]
    worker.stop()
    for line in worker.text().splitlines():
        json.loads(line)


RESULTS: list[tuple[str, object]] = [
    ("float('nan')", "NaN"),
    ("{'a': 'x\\x00y'}", {"a": "x␀y"}),
    ("'\\ud800'", "\ufffd"),
    ("b'bytes'", None),
    ("{1, 2}", None),
    ("(x for x in [1])", None),
    ("'x' * 3_000_000", None),
    ("[[]]", [[]]),
]


def test_result_of_any_kind_never_fails_its_job(database: QueueDatabase, workers: Workers) -> None:
    jobs = [database.put("give", {"python": python}) for python, _ in RESULTS]

    workers.start("--burst", ready=False).process.wait(60)

    for job_id, (python, result) in zip(jobs, RESULTS, strict=True):
        (run,) = database.runs(job_id)
        assert (run["outcome"], run["success"], run["result"]) == ("succeeded", True, result), python
        assert (run["error"] is None) == (result is not None), python


def test_flood_of_prints_is_bounded_and_fails_nothing(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("print", {"lines": 40_000, "length": 200})
    long_line = database.put("print", {"lines": 2, "length": 5_000_000})

    worker = workers.start()

    eventually(lambda: database.outcomes(job_id) == database.outcomes(long_line) == ["succeeded"], timeout=60)
    worker.stop()
    assert worker.log.stat().st_size < 20_000_000
    assert "bytes cut" in worker.text()


def test_job_that_prints_survives_the_death_of_its_keeper(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("print_slowly", {"seconds": 1.5})
    worker = workers.start("--no-maintenance")
    runner = worker.runner()
    assert runner is not None
    database.until_started(1)

    os.kill(worker.keeper_pid, signal.SIGKILL)

    runner.wait(60)
    assert database.outcomes(job_id) == ["succeeded"]
