"""A job by its id: an answer in every state, its result, and calling it off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from psycopg import Connection
from psycopg.rows import DictRow

from pgq_core import (
    AsyncJobQueue,
    CancelAnswer,
    InvalidJob,
    JobFailed,
    JobNotFound,
    JobQueue,
    JobState,
    ResultNotReady,
)
from tests.queue.rows import value

Bring = Callable[[JobQueue, Connection[DictRow], int], object]


def _kill(queue: JobQueue, conn: Connection[DictRow], job_id: int) -> None:
    queue.fail(queue.claim()[0], ValueError("never"), retryable=False)


def _discard(queue: JobQueue, conn: Connection[DictRow], job_id: int) -> None:
    _kill(queue, conn, job_id)
    conn.execute("SELECT discard(id) FROM dead_letter_jobs")


def _delete_after_a_run(queue: JobQueue, conn: Connection[DictRow], job_id: int) -> None:
    queue.release(queue.claim()[0])
    conn.execute("DELETE FROM jobs")


STATES: dict[JobState, Bring] = {
    JobState.PENDING: lambda queue, conn, job_id: None,
    JobState.SCHEDULED: lambda queue, conn, job_id: conn.execute("UPDATE jobs SET not_before = now() + interval '1 h'"),
    JobState.WAITING: lambda queue, conn, job_id: conn.execute("UPDATE jobs SET status = 'waiting', waiting_for = 'x'"),
    JobState.RUNNING: lambda queue, conn, job_id: queue.claim(),
    JobState.SUCCEEDED: lambda queue, conn, job_id: queue.complete(queue.claim()[0], {"sum": 3}),
    JobState.DEAD: _kill,
    JobState.CANCELLED: lambda queue, conn, job_id: queue.cancel(job_id),
    JobState.DISCARDED: _discard,
    JobState.DELETED: _delete_after_a_run,
}


@pytest.mark.parametrize("state", STATES)
def test_a_job_is_found_in_every_state(queue: JobQueue, conn: Connection[DictRow], state: JobState) -> None:
    job = queue.enqueue("t", {"a": 1}, priority=2)
    STATES[state](queue, conn, job.id)

    report = queue.get(job.id)

    assert report.state is state
    assert (report.id, report.queue, report.type, report.priority) == (job.id, "default", "t", 2)
    assert (report.finished_at is not None) is state.is_final
    keeps_data = not state.is_final or state in (JobState.DEAD, JobState.DISCARDED)
    assert report.data == ({"a": 1} if keeps_data else None)


def test_a_report_of_a_success_has_its_run_and_result(queue: JobQueue) -> None:
    job = queue.enqueue("t")
    queue.fail(queue.claim()[0], ValueError("first"), delay=0)
    queue.complete(queue.claim()[0], [1, None])

    report = queue.get(job.id)

    assert (report.state, report.result, report.attempts) == (JobState.SUCCEEDED, [1, None], 2)
    assert [(run.attempt, run.outcome, run.error) for run in report.runs] == [
        (1, "retried", "ValueError: first"),
        (2, "succeeded", None),
    ]
    assert report.finished_at == report.runs[-1].finished_at
    assert report.runs[0].started_at.utcoffset() == timedelta(0)
    assert (report.dead_letter, report.follow_up) == (None, None)


def test_a_report_of_a_running_job_says_who_holds_it(queue: JobQueue) -> None:
    job = queue.enqueue("t", idempotency_key="k")
    queue.claim(worker_id="me")
    queue.cancel(job.id)

    report = queue.get(job.id)

    assert (report.locked_by, report.cancel_requested, report.idempotency_key) == ("me", True, "k")
    assert report.locked_at is not None


def test_a_dead_letter_and_its_replay_point_at_each_other(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = queue.enqueue("t", {"a": 1}, max_attempts=1)
    queue.fail(queue.claim()[0], "never")
    dead = queue.get(job.id)
    assert dead.dead_letter is not None
    assert (dead.dead_letter.reason, dead.dead_letter.resolution) == ("exhausted", None)
    follow_up = value(conn, "SELECT replay(%s)", dead.dead_letter.id)

    report, replayed = queue.get(job.id), queue.get(follow_up)

    assert (report.state, report.follow_up) == (JobState.DEAD, follow_up)
    assert report.dead_letter is not None
    assert report.dead_letter.resolution == "replayed"
    assert (replayed.state, replayed.replayed_from) == (JobState.PENDING, dead.dead_letter.id)
    queue.complete(queue.claim()[0])
    assert queue.get(follow_up).replayed_from == dead.dead_letter.id


def test_an_id_that_never_was_is_an_error_everywhere(queue: JobQueue) -> None:
    for job_id in (0, -1, 10**18, 2**63 - 1, 2**63, -(2**63) - 1, 2**70):
        for verb in (queue.get, queue.cancel, queue.result):
            with pytest.raises(JobNotFound) as missing:
                verb(job_id)
            assert missing.value.job_id == job_id


@pytest.mark.parametrize(
    "job_id", [1.5, 2.0, "1", b"1", True, None, [1], Decimal(1), pytest.param(10**5000, id="long")]
)
async def test_what_is_no_number_is_no_id(queue: JobQueue, async_queue: AsyncJobQueue, job_id: Any) -> None:
    """The server would round it, or read the text, and answer another job."""
    for _ in range(2):
        queue.enqueue("t")

    for verb in (queue.get, queue.cancel, queue.result):
        with pytest.raises(InvalidJob) as refused:
            verb(job_id)
        assert refused.value.field == "id"
    for ask in (async_queue.get, async_queue.cancel, async_queue.result):
        with pytest.raises(InvalidJob):
            await ask(job_id)


def test_an_id_that_is_a_kind_of_number_is_answered_as_a_plain_one(queue: JobQueue) -> None:
    class Id(int):
        pass

    job_id = Id(queue.enqueue("t").id)

    assert type(queue.get(job_id).id) is int
    assert queue.cancel(job_id) is CancelAnswer.CANCELLED


def test_a_result_is_waited_for(dsn: str, queue: JobQueue) -> None:
    job = queue.enqueue("t")

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(queue.result, job.id, 60)
        with pytest.raises(ResultNotReady) as early:
            queue.result(job.id, 0.05)
        queue.complete(queue.claim()[0], {"sum": 3})

        assert waiting.result(60) == {"sum": 3}
    assert isinstance(early.value, TimeoutError)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), -1, -0.001, 1e18, "5", True, timedelta(days=-1)])
async def test_a_wait_that_is_no_span_is_refused(queue: JobQueue, async_queue: AsyncJobQueue, timeout: Any) -> None:
    """With NaN it never ended."""
    job = queue.enqueue("t")

    with pytest.raises(InvalidJob) as refused:
        queue.result(job.id, timeout)
    assert refused.value.field == "timeout"
    with pytest.raises(InvalidJob):
        await asyncio.wait_for(async_queue.result(job.id, timeout), 20)


@pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0), 0.01])
def test_a_short_wait_looks_and_ends(queue: JobQueue, timeout: Any) -> None:
    job = queue.enqueue("t")
    with pytest.raises(ResultNotReady):
        queue.result(job.id, timeout)

    queue.complete(queue.claim()[0], 5)

    assert queue.result(job.id, timeout) == 5
    assert queue.result(job.id, None) == 5


@pytest.mark.parametrize("state", [JobState.DEAD, JobState.CANCELLED, JobState.DISCARDED, JobState.DELETED])
def test_waiting_for_a_result_that_will_not_come_ends(
    queue: JobQueue, conn: Connection[DictRow], state: JobState
) -> None:
    job = queue.enqueue("t")
    STATES[state](queue, conn, job.id)

    with pytest.raises(JobFailed) as failed:
        queue.result(job.id)

    assert (failed.value.job_id, failed.value.state) == (job.id, state)
    if state is JobState.DEAD:
        assert failed.value.error == "ValueError: never"
        assert failed.value.dead_letter_id is not None


def test_a_failed_result_names_the_follow_up(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = queue.enqueue("t")
    _kill(queue, conn, job.id)
    follow_up = value(conn, "SELECT replay(id) FROM dead_letter_jobs")

    with pytest.raises(JobFailed, match=f"replayed as job {follow_up}"):
        queue.result(job.id)


def test_cancel_tells_what_it_could_do(queue: JobQueue, conn: Connection[DictRow]) -> None:
    waiting, running, done = (queue.enqueue("t", delay=60), queue.enqueue("t", priority=1), queue.enqueue("t"))
    queue.claim()
    queue.complete(queue.claim()[0])

    assert queue.cancel(waiting.id) is CancelAnswer.CANCELLED
    assert queue.cancel(running.id) is CancelAnswer.REQUESTED
    assert queue.cancel(done.id) is CancelAnswer.ENDED
    assert queue.cancel(waiting.id) is CancelAnswer.ENDED
    assert value(conn, "SELECT cancel_requested FROM jobs") is True


async def test_the_asynchronous_queue_answers_the_same(async_queue: AsyncJobQueue) -> None:
    job = await async_queue.enqueue("t", {"a": 1})
    waiting = asyncio.create_task(async_queue.result(job.id, 20))
    assert (await async_queue.get(job.id)).state is JobState.PENDING
    (claimed,) = await async_queue.claim()
    await async_queue.complete(claimed, "done")

    assert await waiting == "done"
    assert await async_queue.cancel(job.id) is CancelAnswer.ENDED
    with pytest.raises(JobNotFound):
        await async_queue.get(10**18)
