"""What becomes of jobs that fail, by real workers."""

from __future__ import annotations

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


def test_job_that_always_fails_becomes_a_dead_letter_with_its_story(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("fail", {"text": "simulated transient failure"}, max_attempts=3)
    database.run("INSERT INTO job_types (name, backoff_base, backoff_cap) VALUES ('fail', '1 ms', '10 ms')")

    workers.start()

    letter = eventually(lambda: database.letter(job_id), timeout=30)
    assert letter is not None
    assert letter["reason"] == "exhausted"
    assert letter["attempts"] == 3
    assert letter["last_error"] == "RuntimeError: simulated transient failure"
    assert "raise RuntimeError" in letter["traceback"]
    assert letter["error_class"] == "RuntimeError"
    assert [entry["outcome"] for entry in letter["attempt_log"]] == ["retried", "retried", "dead"]
    runs = database.runs(job_id)
    assert [(run["attempt"], run["outcome"], run["success"]) for run in runs] == [
        (1, "retried", False),
        (2, "retried", False),
        (3, "dead", False),
    ]
    assert all(run["traceback"] for run in runs)
    assert database.job(job_id) is None
    assert database.all(FAULTS) == []
