"""Loops of one's own: claim with a lease, then extend, complete, fail or release."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, ClaimLost, InvalidJob, Job, JobQueue, JobStatus, NonRetryable, Registry, Retry
from pgq_core.domain.retry import RetryPolicy
from tests.queue.rows import row, rows, value
from tests.support.waiting import eventually

RUNS = "SELECT * FROM job_runs ORDER BY id"


def one(queue: JobQueue, **options: Any) -> Job:
    """A job, enqueued and claimed."""
    queue.enqueue("t", {"n": 1}, **options)
    (job,) = queue.claim()
    return job


def test_a_claim_takes_the_highest_priority_first_up_to_its_limit(queue: JobQueue) -> None:
    for number, priority in enumerate([0, 5, -5, 5]):
        queue.enqueue("t", number, priority=priority)
    queue.enqueue("t", "elsewhere", queue="other")
    queue.enqueue("t", "later", delay=60)

    assert [job.data for job in queue.claim("default", 3)] == [1, 3, 0]
    assert [job.data for job in queue.claim("default", 3)] == [2]
    assert queue.claim("default", 3) == []


def test_a_claimed_job_carries_all_of_its_row(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue, idempotency_key="k", priority=3, max_attempts=2, timeout=9, trace_context={"a": 1})

    stored = row(conn, "SELECT *, lease_until - locked_at AS lease FROM jobs")
    assert (job.status, job.attempt, job.is_last_attempt, job.key) == (JobStatus.RUNNING, 1, False, "k")
    assert (job.timeout, job.trace_context) == (timedelta(seconds=9), {"a": 1})
    assert (stored["status"], stored["claim_token"], stored["lease"]) == (
        "running",
        job.claim_token,
        timedelta(minutes=5),
    )
    assert "-loop-" in stored["locked_by"]


def test_a_claim_may_name_itself_its_lease_and_its_types(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("a")
    queue.enqueue("b")

    (job,) = queue.claim("default", 10, lease=7, worker_id="mine", job_types=["b"])

    assert job.type == "b"
    held = row(conn, "SELECT locked_by, lease_until - locked_at AS lease FROM jobs WHERE status = 'running'")
    assert held == {"locked_by": "mine", "lease": timedelta(seconds=7)}


def test_a_queue_of_any_accepted_name_is_served(queue: JobQueue) -> None:
    for name in ("a/b", "two words", "größe", "😀", "%s {0}", "x" * 200):
        job = queue.enqueue(name, queue=name)

        assert [claimed.id for claimed in queue.claim(name, job_types=[name])] == [job.id]


def test_a_paused_queue_gives_nothing(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("t")
    conn.execute("SELECT pause('default')")

    assert queue.claim() == []


def test_a_claim_out_of_range_is_refused(queue: JobQueue) -> None:
    refused: list[dict[str, Any]] = [
        {"limit": 0},
        {"limit": 10**6},
        {"lease": 0},
        {"queue": ""},
        {"job_types": ["a,b"]},
        {"job_types": "mail"},
        {"job_types": b"mail"},
        {"job_types": 5},
    ]
    for options in refused:
        with pytest.raises(InvalidJob):
            queue.claim(**options)


def test_extend_renews_the_lease_and_tells_of_a_wish_to_cancel(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)
    before = queue.extend(job, 1)
    queue.cancel(job.id)

    after = queue.extend(job, timedelta(hours=1))

    assert not before.cancel_requested
    assert after.cancel_requested
    assert after.until - before.until > timedelta(minutes=59)
    assert value(conn, "SELECT lease_until FROM jobs") == after.until


def test_complete_closes_the_run_and_removes_the_row(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)

    queue.complete(job, {"ok": True})

    run = row(conn, RUNS)
    assert value(conn, "SELECT count(*) FROM jobs") == 0
    assert (run["job_id"], run["attempt"], run["outcome"], run["success"]) == (job.id, 1, "succeeded", True)
    assert (run["result"], run["error"]) == ({"ok": True}, None)
    assert run["started_at"] <= run["finished_at"]
    assert value(conn, "SELECT sum(succeeded) FROM job_stats") == 1


def test_a_result_that_is_no_json_is_a_success_with_a_note(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.complete(one(queue), {"ids": {1, 2}})

    run = row(conn, RUNS)
    assert (run["success"], run["result"]) == (True, None)
    assert run["error"] == "result not storable: a set is no JSON value (at result.ids)"


def test_complete_joins_the_caller_s_transaction(dsn: str, queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)
    with psycopg.connect(dsn) as own:
        own.execute("CREATE TABLE effect AS SELECT 1")
        queue.complete(job, conn=own)
        assert value(conn, "SELECT count(*) FROM jobs") == 1
        own.rollback()

    assert value(conn, "SELECT count(*) FROM jobs") == 1
    queue.complete(job)


def test_a_complete_that_deadlocks_in_the_caller_s_transaction_is_raised_at_once(
    dsn: str, queue: JobQueue, conn: Connection[DictRow]
) -> None:
    """What the caller has locked before stays locked, so that each repetition would be the next victim."""
    job = one(queue)
    conn.execute("CREATE TABLE effect (id int)")
    with psycopg.connect(dsn) as own, psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as threads:
        own.execute("SET deadlock_timeout = '100ms'")
        own.execute("LOCK TABLE effect")
        other.execute("SET deadlock_timeout = '20s'")
        other.execute("SELECT FROM jobs FOR UPDATE")
        waiting = threads.submit(other.execute, "LOCK TABLE effect")
        eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)

        with pytest.raises(psycopg.errors.DeadlockDetected):
            queue.complete(job, conn=own)

        own.rollback()
        waiting.result(60)
    eventually(lambda: value(conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
    assert value(conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 1


def test_a_failure_is_written_down_and_tried_again_after_the_backoff(
    queue: JobQueue, conn: Connection[DictRow]
) -> None:
    job = one(queue)
    try:
        raise ValueError("bad\x00luck")
    except ValueError as error:
        answer = queue.fail(job, error)

    stored, run = row(conn, "SELECT * FROM jobs"), row(conn, RUNS)
    assert answer.dead_letter_id is None
    assert answer.retry_at == stored["not_before"]
    assert timedelta(0) <= stored["not_before"] - run["finished_at"] <= timedelta(seconds=2)
    assert (stored["attempts"], stored["last_error"], stored["locked_by"]) == (1, "ValueError: bad␀luck", None)
    assert (run["attempt"], run["outcome"], run["success"], run["error_class"]) == (1, "retried", False, "ValueError")
    assert "in test_a_failure_is_written_down" in run["traceback"]


def test_the_last_failure_becomes_a_dead_letter_with_its_story(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("t", {"n": 1}, max_attempts=2, priority=4)
    for _ in range(2):
        (job,) = queue.claim()
        answer = queue.fail(job, RuntimeError("simulated"), delay=0)

    letter = row(conn, "SELECT * FROM dead_letter_jobs")
    assert answer.dead_letter_id == letter["id"]
    assert (letter["original_job_id"], letter["attempts"], letter["reason"]) == (job.id, 2, "exhausted")
    assert (letter["payload"], letter["priority"]) == ({"type": "t", "data": {"n": 1}}, 4)
    assert letter["last_error"] == "RuntimeError: simulated"
    assert len(letter["fingerprint"]) == 12
    assert [entry["outcome"] for entry in letter["attempt_log"]] == ["retried", "dead"]
    assert [(r["attempt"], r["outcome"]) for r in rows(conn, RUNS)] == [(1, "retried"), (2, "dead")]
    assert value(conn, "SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize("never", [{"error": "never", "retryable": False}, {"error": NonRetryable("never")}], ids=str)
def test_a_failure_that_cannot_be_retried_is_buried_at_once(
    queue: JobQueue, conn: Connection[DictRow], never: dict[str, Any]
) -> None:
    answer = queue.fail(one(queue), **never)

    letter = row(conn, "SELECT id, reason, attempts FROM dead_letter_jobs")
    assert letter == {"id": answer.dead_letter_id, "reason": "non_retryable", "attempts": 1}


@pytest.mark.parametrize(
    "wish", [{"error": "busy", "delay": timedelta(hours=2)}, {"error": Retry("busy", delay=7200)}], ids=str
)
def test_a_delay_that_was_asked_for_wins_over_the_backoff(
    queue: JobQueue, conn: Connection[DictRow], wish: dict[str, Any]
) -> None:
    queue.fail(one(queue), **wish)

    assert value(conn, "SELECT not_before - now() FROM jobs") > timedelta(minutes=119)


def test_the_policy_of_the_handler_counts(queue: JobQueue, registry: Registry, conn: Connection[DictRow]) -> None:
    registry.handler("t", retry=RetryPolicy(timedelta(microseconds=1), timedelta(microseconds=2)))(lambda data: None)
    queue.fail(one(queue), "e")
    assert value(conn, "SELECT not_before <= now() FROM jobs")

    conn.execute("DELETE FROM jobs")
    registry.handler("p", retry=lambda attempt, error: 3600.0 * attempt)(lambda data: None)
    queue.enqueue("p")
    queue.fail(queue.claim()[0], ValueError("e"))
    assert value(conn, "SELECT not_before - now() FROM jobs") > timedelta(minutes=59)


def test_announced_backoff_counts_where_the_handler_is_unknown(queue: JobQueue, conn: Connection[DictRow]) -> None:
    conn.execute("INSERT INTO job_types (name, backoff_base, backoff_cap) VALUES ('t', '1 year', '1 year')")

    queue.fail(one(queue), "e")

    assert value(conn, "SELECT not_before - now() FROM jobs") > timedelta(minutes=1)


def test_release_hands_back_unspent(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = one(queue)

    queue.release(job)

    assert row(conn, "SELECT status, attempts, locked_by, not_before FROM jobs") == {
        "status": "pending",
        "attempts": 0,
        "locked_by": None,
        "not_before": job.not_before,
    }
    assert (row(conn, RUNS)["outcome"], row(conn, RUNS)["success"]) == ("released", None)


def test_a_late_owner_changes_nothing(queue: JobQueue, conn: Connection[DictRow]) -> None:
    late = one(queue)
    queue.release(late)
    (current,) = queue.claim()

    for write in (
        lambda: queue.complete(late, "late"),
        lambda: queue.fail(late, "late"),
        lambda: queue.fail(late, "late", retryable=False),
        lambda: queue.release(late),
        lambda: queue.extend(late),
    ):
        with pytest.raises(ClaimLost) as lost:
            write()
        assert lost.value.job_id == late.id
    assert value(conn, "SELECT claim_token FROM jobs") == current.claim_token
    assert value(conn, "SELECT count(*) FROM job_runs") == 1

    queue.complete(current)
    with pytest.raises(ClaimLost):
        queue.complete(current)


def test_a_job_that_was_never_claimed_cannot_be_ended(queue: JobQueue) -> None:
    with pytest.raises(ClaimLost):
        queue.complete(Job(id=1, queue="default", type="t", data={}))


def test_a_job_without_attempts_left_is_buried_instead_of_given_out(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("spent", max_attempts=3)
    conn.execute("UPDATE jobs SET attempts = 3, last_error = 'the third'")
    queue.enqueue("fresh")

    assert [job.type for job in queue.claim("default", 10)] == ["fresh"]

    assert row(conn, "SELECT reason, attempts, last_error FROM dead_letter_jobs") == {
        "reason": "exhausted",
        "attempts": 3,
        "last_error": "the third",
    }
    assert row(conn, RUNS)["attempt"] == 0


@pytest.mark.parametrize("data", ["[" * 3000 + "]" * 3000, "9" * 5000], ids=["deep", "long"])
def test_a_payload_that_python_cannot_read_does_not_stop_the_others(
    queue: JobQueue, conn: Connection[DictRow], data: str
) -> None:
    """Plain SQL may store what no Python can parse: one such row must not make whole claims fail, again and again."""
    conn.execute("""INSERT INTO jobs (payload) VALUES (('{"type": "t", "data": ' || %s || '}')::jsonb)""", [data])
    queue.enqueue("fresh")

    assert [job.type for job in queue.claim("default", 10)] == ["fresh"]

    letter = row(conn, "SELECT reason, job_type, last_error FROM dead_letter_jobs")
    assert (letter["reason"], letter["job_type"]) == ("malformed", "t")
    assert "cannot be read" in letter["last_error"]


def test_a_day_without_a_partition_gets_one_when_a_run_ends(queue: JobQueue, conn: Connection[DictRow]) -> None:
    finished, failed = one(queue), one(queue)
    for partition in rows(
        conn, "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'job_runs'::regclass"
    ):
        conn.execute(f"DROP TABLE {partition['name']}")

    queue.complete(finished)
    queue.fail(failed, "e")

    assert value(conn, "SELECT count(*) FROM job_runs") == 2


async def test_the_asynchronous_queue_does_the_same(async_queue: AsyncJobQueue, conn: Connection[DictRow]) -> None:
    for _ in range(4):
        await async_queue.enqueue("t")
    first, second, third, fourth = await async_queue.claim("default", 4)

    await async_queue.extend(first)
    await async_queue.complete(first, 1)
    await async_queue.fail(second, "e")
    await async_queue.fail(third, "e", retryable=False)
    await async_queue.release(fourth)
    with pytest.raises(ClaimLost):
        await async_queue.complete(first)

    assert [r["outcome"] for r in rows(conn, RUNS)] == ["succeeded", "retried", "dead", "released"]
