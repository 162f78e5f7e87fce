"""A transaction that somebody has left open holds up the one job that it has locked, and no other."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_a_locked_running_job_holds_up_no_other_outcome(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection
) -> None:
    workers.start(concurrency=4)
    held = database.put("sleep_async", {"seconds": 1})
    database.until_started(1)
    stranger.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (held,))
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pgq worker: finish' AND wait_event_type = 'Lock'"
    eventually(lambda: database.all(waits), timeout=60)
    others = [database.put("noop") for _ in range(20)]

    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in others), timeout=60)
    assert database.outcomes(held) == []
    stranger.rollback()
    eventually(lambda: database.outcomes(held) == ["succeeded"], timeout=60)
    assert database.all(FAULTS) == []


@pytest.mark.parametrize("verb", ["cancel", "discard"])
def test_a_caller_who_leaves_his_transaction_open_holds_up_no_statistics_of_a_worker(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection, verb: str
) -> None:
    """What his verb counts is of the queue and type that the worker counts too."""
    worker = workers.start()
    if verb == "cancel":
        target = database.put("noop", not_before="2999-01-01")
    else:
        dead = database.put("fail", {"text": "x"}, max_attempts=1)
        target = eventually(lambda: database.letter(dead), timeout=60)["id"]
    worker.wait_until_ready()
    stranger.execute(f"SELECT {verb}(%s)", (target,))  # type: ignore[arg-type]  # one of two words
    others = [database.put("noop") for _ in range(20)]

    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in others), timeout=60)
    assert database.value("SELECT slot FROM workers") == 0
