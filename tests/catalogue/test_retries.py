"""Retries, poison jobs and the dead-letter queue."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

import pytest

from pgq_core import JobQueue
from pgq_core.domain.retry import RetryPolicy
from pgq_core.maintenance import Maintenance
from tests.support.queue_database import FAULTS, QueueDatabase


@pytest.mark.parametrize("attempt", [1, 2, 3, 4])
def test_five_thousand_jobs_that_fail_together_do_not_come_back_together(attempt: int) -> None:
    policy, random = RetryPolicy(timedelta(seconds=30), timedelta(hours=1)), Random(attempt)

    due = [policy.delay_seconds(attempt, random) for _ in range(5000)]

    assert max(due) - min(due) > 30
    assert max(due) <= policy.ceiling(attempt).total_seconds()
    assert max(Counter(int(second) for second in due).values()) < 0.05 * len(due)


@pytest.mark.parametrize("limit", [1, 2, 3, 25])
def test_job_that_always_fails_runs_as_often_as_it_may_and_no_more(
    database: QueueDatabase, queue: JobQueue, limit: int
) -> None:
    job_id = database.put("job", max_attempts=limit, idempotency_key="k")
    runs = 0

    while claimed := queue.claim("default", 5):
        (job,) = claimed
        queue.fail(job, "broken", delay=0)
        database.run("UPDATE jobs SET not_before = now()")
        runs += 1

    assert runs == limit
    assert database.outcomes(job_id) == ["retried"] * (limit - 1) + ["dead"]
    assert [run["attempt"] for run in database.runs(job_id)] == list(range(1, limit + 1))
    letter = database.letter(job_id)
    assert letter is not None
    assert (letter["attempts"], letter["reason"]) == (limit, "exhausted")
    assert database.all("SELECT FROM jobs") == []
    assert database.all(FAULTS) == []


async def test_lowered_limit_ends_a_job_at_its_next_touch(
    database: QueueDatabase, queue: JobQueue, maintenance: Maintenance
) -> None:
    job_id = database.put("job", max_attempts=9)
    for _ in range(3):
        (job,) = queue.claim("default", 1)
        queue.fail(job, "broken", delay=0)
        database.run("UPDATE jobs SET not_before = now()")

    database.run("UPDATE jobs SET max_attempts = 2")
    await maintenance.spent_budgets.run_once()

    assert queue.claim("default", 1) == []
    letter = database.letter(job_id)
    assert letter is not None
    assert letter["attempts"] == 3
    assert database.all("SELECT FROM jobs") == []
