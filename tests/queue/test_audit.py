"""Following jobs of a queue that does not write every success down."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import DictRow

from pgq_core import CancelAnswer, Job, JobFailed, JobNotFound, JobQueue, JobState
from tests.queue.rows import rows, value


@pytest.fixture(autouse=True)
def keeps_failures_only(conn: Connection[DictRow]) -> None:
    conn.execute("INSERT INTO queues (name, audit) VALUES ('default', 'failures')")


def one(queue: JobQueue) -> Job:
    queue.enqueue("t")
    (job,) = queue.claim()
    return job


def test_job_that_left_no_run_is_unknown_once_it_has_ended(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)
    assert queue.get(job.id).state is JobState.RUNNING

    queue.complete(job)

    for ask in (queue.get, lambda job_id: queue.result(job_id, timeout=1), queue.cancel):
        with pytest.raises(JobNotFound, match="or its queue keeps none of a success"):
            ask(job.id)
    assert rows(conn, "SELECT FROM job_runs") == []
    assert value(conn, "SELECT sum(succeeded)::int FROM job_stats") == 1


def test_value_that_is_waited_for_is_kept(queue: JobQueue) -> None:
    job = one(queue)

    queue.complete(job, {"sum": 3})

    assert queue.result(job.id, timeout=1) == {"sum": 3}
    assert queue.get(job.id).state is JobState.SUCCEEDED


def test_value_that_cannot_be_stored_leaves_its_note(queue: JobQueue) -> None:
    job = one(queue)

    queue.complete(job, {1, 2})

    assert [run.error for run in queue.get(job.id).runs] == ["result not storable: a set is no JSON value"]


def test_every_story_that_began_has_its_end(queue: JobQueue) -> None:
    released, failed, stopped = one(queue), one(queue), one(queue)
    queue.release(released)
    queue.fail(failed, ValueError("first"), delay=0)
    assert queue.cancel(stopped.id) is CancelAnswer.REQUESTED
    for job in (*queue.claim(limit=5), stopped):
        queue.complete(job)

    outcomes = {job.id: [run.outcome for run in queue.get(job.id).runs] for job in (released, failed, stopped)}
    assert outcomes == {
        released.id: ["released", "succeeded"],
        failed.id: ["retried", "succeeded"],
        stopped.id: ["succeeded"],
    }


def test_death_keeps_its_run_and_so_does_the_success_of_its_replay(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)
    queue.fail(job, ValueError("never"), retryable=False)
    follow_up = value(conn, "SELECT replay(id) FROM dead_letter_jobs")
    (replayed,) = queue.claim()
    queue.complete(replayed)

    assert queue.get(follow_up).state is JobState.SUCCEEDED
    assert [run.outcome for run in queue.get(job.id).runs] == ["dead"]
    with pytest.raises(JobFailed):
        queue.result(job.id, timeout=1)


def test_key_of_a_success_without_a_run_stays_taken(queue: JobQueue) -> None:
    job = queue.enqueue("t", idempotency_key="k")
    queue.complete(queue.claim()[0])

    again = queue.enqueue("t", idempotency_key="k", delay=timedelta(seconds=1))

    assert (again.id, again.created) == (job.id, False)
    with pytest.raises(JobNotFound):
        queue.get(again.id)


@pytest.mark.parametrize(
    "columns", ["(name, audit) VALUES ('x', 'some')", "(name, audit_sample) VALUES ('x', 0)",
                "(name, audit_sample) VALUES ('x', 1.01)", "(name, audit_sample) VALUES ('x', 'NaN')"]
)  # fmt: skip
def test_setting_that_means_nothing_is_refused(conn: Connection[DictRow], columns: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="queue_audit"):
        conn.execute(f"INSERT INTO queues {columns}".encode())
