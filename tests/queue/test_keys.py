"""Idempotency keys: one live job per key, a window after its end, and every race between the two."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from psycopg import Connection, IsolationLevel
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, Job, JobQueue, JobRequest, KeyConflict
from pgq_core.errors import DatabaseUnavailable
from tests.queue.rows import row, value
from tests.support.waiting import eventually

ENDS: dict[str, Callable[[JobQueue, Job], object]] = {
    "succeeded": lambda queue, job: queue.complete(job),
    "dead": lambda queue, job: queue.fail(job, "never", retryable=False),
}
LIVE: dict[str, Callable[[JobQueue, Job], object]] = {
    "running": lambda queue, job: None,
    "retried": lambda queue, job: queue.fail(job, "later"),
    "released": lambda queue, job: queue.release(job),
}


def test_the_same_key_again_answers_the_existing_job(queue: JobQueue, conn: Connection[DictRow]) -> None:
    first = queue.enqueue("t", {"a": 1, "b": [1, 2]}, idempotency_key="k")
    again = queue.enqueue("t", {"b": [1, 2], "a": 1}, idempotency_key="k", priority=5, delay=60)

    assert (first.created, again.created, again.id) == (True, False, first.id)
    assert row(conn, "SELECT priority FROM jobs") == {"priority": 0}


def test_another_payload_type_or_queue_under_the_key_is_a_conflict(queue: JobQueue) -> None:
    first = queue.enqueue("t", {"a": 1}, idempotency_key="k")

    others = [("t", {"a": 2}, None), ("t", {"a": 1.0}, None), ("u", {"a": 1}, None), ("t", {"a": 1}, "other")]
    for job_type, data, queue_name in others:
        with pytest.raises(KeyConflict) as refused:
            queue.enqueue(job_type, data, queue=queue_name, idempotency_key="k")
        assert (refused.value.key, refused.value.job_id) == ("k", first.id)


@pytest.mark.parametrize("state", LIVE)
def test_a_live_job_holds_its_key_in_every_state(queue: JobQueue, state: str) -> None:
    first = queue.enqueue("t", idempotency_key="k")
    (job,) = queue.claim()
    LIVE[state](queue, job)

    again = queue.enqueue("t", idempotency_key="k")

    assert (again.id, again.created) == (first.id, False)


@pytest.mark.parametrize("end", ENDS)
def test_a_key_stays_taken_for_a_window_after_the_end(queue: JobQueue, conn: Connection[DictRow], end: str) -> None:
    first = queue.enqueue("t", idempotency_key="k")
    (job,) = queue.claim()
    ENDS[end](queue, job)

    again = queue.enqueue("t", idempotency_key="k")
    with pytest.raises(KeyConflict):
        queue.enqueue("t", 5, idempotency_key="k")

    assert (again.id, again.created) == (first.id, False)
    assert value(conn, "SELECT count(*) FROM jobs") == 0
    window = value(conn, "SELECT expires_at::text FROM job_keys")
    if end == "dead":
        assert window == "infinity"
    else:
        assert value(conn, "SELECT expires_at - now() FROM job_keys") > timedelta(hours=23)


def test_after_its_window_a_key_is_free_for_any_payload(queue: JobQueue, conn: Connection[DictRow]) -> None:
    first = queue.enqueue("t", idempotency_key="k")
    queue.cancel(first.id)
    conn.execute("UPDATE job_keys SET expires_at = now() - interval '1 s'")

    again = queue.enqueue("u", 5, idempotency_key="k")

    assert again.created
    assert again.id != first.id


def test_a_job_deleted_by_hand_starts_its_window_too(queue: JobQueue, conn: Connection[DictRow]) -> None:
    first = queue.enqueue("t", idempotency_key="k")
    conn.execute("DELETE FROM jobs")

    assert queue.enqueue("t", idempotency_key="k").id == first.id


def test_a_replay_is_found_under_the_key_of_its_dead_letter(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("t", idempotency_key="k")
    (job,) = queue.claim()
    letter = queue.fail(job, "never", retryable=False).dead_letter_id
    follow_up = value(conn, "SELECT replay(%s)", letter)

    assert queue.enqueue("t", idempotency_key="k").id == follow_up
    assert queue.get(job.id).follow_up == follow_up


def test_an_enqueue_that_waits_for_a_holder_which_then_ends_answers_the_holder(
    dsn: str, queue: JobQueue, conn: Connection[DictRow]
) -> None:
    """The waiting row gets in and is thrown out again by the check behind it: that must not reach the caller."""
    first = queue.enqueue("t", idempotency_key="k")
    with psycopg.connect(dsn) as ending, ThreadPoolExecutor(2) as threads:
        ending.execute("DELETE FROM jobs")
        plain = threads.submit(queue.enqueue, "t", idempotency_key="k")
        with psycopg.connect(dsn) as own:
            own.execute("CREATE TEMP TABLE mine AS SELECT 1")
            joined = threads.submit(queue.enqueue, "t", idempotency_key="k", conn=own)
            eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 2)
            ending.commit()

            assert joined.result(60).id == first.id
            assert own.execute("SELECT * FROM mine").fetchall() == [(1,)]  # the caller's transaction goes on

        assert plain.result(60).id == first.id
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_an_enqueue_that_waits_for_a_holder_which_is_rolled_back_is_created(
    dsn: str, queue: JobQueue, conn: Connection[DictRow]
) -> None:
    with psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as threads:
        queue.enqueue("t", idempotency_key="k", conn=other)
        waiting = threads.submit(queue.enqueue, "t", idempotency_key="k")
        eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
        other.rollback()

        assert waiting.result(60).created


def test_an_enqueue_that_waits_for_a_holder_which_commits_answers_it(
    dsn: str, queue: JobQueue, conn: Connection[DictRow]
) -> None:
    """The holder committed after our snapshot: the first look-up cannot see it, the second does."""
    with psycopg.connect(dsn) as other, ThreadPoolExecutor(2) as threads:
        holder = queue.enqueue("t", idempotency_key="k", conn=other)
        same = threads.submit(queue.enqueue, "t", idempotency_key="k")
        different = threads.submit(queue.enqueue, "t", 5, idempotency_key="k")
        eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 2)
        other.commit()

        assert (same.result(60).id, same.result().created) == (holder.id, False)
        with pytest.raises(KeyConflict):
            different.result(60)


def test_a_frozen_snapshot_that_cannot_see_the_holder_is_an_error_in_the_end(dsn: str, queue: JobQueue) -> None:
    with psycopg.connect(dsn) as own:
        own.isolation_level = IsolationLevel.REPEATABLE_READ
        own.execute("SELECT 1")
        queue.enqueue("t", idempotency_key="k")

        with pytest.raises(DatabaseUnavailable, match="changed hands") as refused:
            queue.enqueue("t", idempotency_key="k", conn=own)

        assert refused.value.sqlstate == "40001"
        assert own.execute("SELECT 2").fetchone() == (2,)


def test_a_deadlock_of_two_callers_over_their_keys_costs_one_of_them_its_turn_at_once(
    dsn: str, queue: JobQueue
) -> None:
    """The victim keeps its first key locked for as long as its transaction lasts: to ask again deadlocks again."""
    with psycopg.connect(dsn) as one, psycopg.connect(dsn) as other, ThreadPoolExecutor(2) as threads:
        for own, key in ((one, "a"), (other, "b")):
            own.execute("SET deadlock_timeout = '100ms'")
            queue.enqueue("t", idempotency_key=key, conn=own)

        def cross(own: Connection[tuple[object, ...]], key: str) -> DatabaseUnavailable | None:
            try:
                queue.enqueue("t", idempotency_key=key, conn=own)
            except DatabaseUnavailable as error:
                assert own.execute("SELECT 1").fetchone() == (1,)
                own.rollback()
                return error
            return None

        errors = [
            crossing.result(60) for crossing in [threads.submit(cross, one, "b"), threads.submit(cross, other, "a")]
        ]
        (error,) = [error for error in errors if error is not None]

    assert error.sqlstate == "40P01"
    assert "repeat it" in error.cause
    assert isinstance(error.__cause__, psycopg.errors.DeadlockDetected)


async def test_the_asynchronous_queue_repeats_no_deadlock_of_a_caller_either(
    dsn: str, async_queue: AsyncJobQueue
) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as one, await psycopg.AsyncConnection.connect(dsn) as other:
        for own, key in ((one, "a"), (other, "b")):
            await own.execute("SET deadlock_timeout = '100ms'")
            await async_queue.enqueue("t", idempotency_key=key, conn=own)

        async def cross(own: psycopg.AsyncConnection[tuple[object, ...]], key: str) -> str | None:
            try:
                await async_queue.enqueue_many([JobRequest("t", idempotency_key=key)], conn=own)
            except DatabaseUnavailable as error:
                await own.rollback()
                return error.sqlstate
            return None

        states = await asyncio.gather(cross(one, "b"), cross(other, "a"))

    assert sorted(states, key=str) == ["40P01", None]


def test_a_deadlock_on_connections_of_our_own_is_repeated(dsn: str, queue: JobQueue, conn: Connection[DictRow]) -> None:
    """The statement that was rolled back has let go of all its keys."""
    conn.execute("SELECT 1")
    with psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as threads:
        other.execute("SET deadlock_timeout = '20s'")  # so that the batch is the victim
        queue.enqueue("t", idempotency_key="b", conn=other)
        batch = threads.submit(
            queue.enqueue_many, [JobRequest("t", idempotency_key="a"), JobRequest("t", idempotency_key="b")]
        )
        eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
        queue.enqueue("t", idempotency_key="a", conn=other)
        other.commit()

        assert [answer.created for answer in batch.result(60)] == [False, False]
    eventually(lambda: value(conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 1)


def test_sixty_four_threads_and_one_key_while_its_holders_come_and_go(dsn: str, conn: Connection[DictRow]) -> None:
    """Only created or existing, every answered id is a job that was, never two live jobs of one key."""
    conn.execute("UPDATE parameters SET value = '0.02' WHERE name = 'key_window'")
    conn.execute("CREATE TABLE seen (id bigint)")
    conn.execute(
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NULL; END $$"
    )
    conn.execute("CREATE TRIGGER zz_see AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION see()")
    done = threading.Event()
    answers: list[tuple[int, bool]] = []

    def end_holders() -> None:
        chance = random.Random(1)
        with JobQueue(dsn) as own, psycopg.connect(dsn, autocommit=True) as hand:
            while not done.is_set():
                if chance.random() < 0.5:
                    hand.execute("DELETE FROM jobs WHERE status <> 'running'")
                for job in own.claim("default", 5):
                    own.complete(job)

    with JobQueue(dsn, max_connections=16) as queue, ThreadPoolExecutor(66) as threads:

        def ask() -> None:
            for _ in range(50):
                job = queue.enqueue("t", {"a": 1}, idempotency_key="one")
                answers.append((job.id, job.created))

        ending = threads.submit(end_holders)
        asking = [threads.submit(ask) for _ in range(64)]
        try:
            for thread in asking:
                thread.result(60)
        finally:
            done.set()
        ending.result(60)

    seen = {r["id"] for r in conn.execute("SELECT id FROM seen")}
    created = [job_id for job_id, was_created in answers if was_created]
    assert len(answers) == 64 * 50
    assert sorted(created) == sorted(seen), "each job that was is one 'created', and nothing else"
    assert {job_id for job_id, _ in answers} <= seen
    assert len(created) > 1


def test_backends_that_die_between_any_two_statements_leave_no_key_behind(dsn: str, conn: Connection[DictRow]) -> None:
    """A key is a part of the insert: it is taken with its job, or not at all."""
    done = threading.Event()

    def end_sessions() -> None:
        with psycopg.connect(dsn, autocommit=True) as hand:
            while not done.is_set():
                hand.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name = 'pgq queue'
                          AND query LIKE '%%INSERT%%' ORDER BY random() LIMIT 1"""
                )
                done.wait(0.01)

    with JobQueue(dsn, timeout=20) as queue, ThreadPoolExecutor(9) as threads:

        def ask(number: int) -> int:
            while True:
                try:
                    return queue.enqueue("t", number, idempotency_key=f"k{number}").id
                except DatabaseUnavailable:
                    continue

        ending = threads.submit(end_sessions)
        try:
            ids = list(threads.map(ask, range(400), timeout=150))
        finally:
            done.set()
        ending.result(60)

    assert len(set(ids)) == 400
    assert value(conn, "SELECT count(*) FROM jobs") == 400
    assert value(conn, "SELECT count(*) FROM job_keys JOIN jobs ON id = job_id AND idempotency_key = key") == 400


async def test_the_asynchronous_queue_answers_the_same(async_queue: AsyncJobQueue) -> None:
    first = await async_queue.enqueue("t", idempotency_key="k")
    again = await async_queue.enqueue("t", idempotency_key="k")
    with pytest.raises(KeyConflict):
        await async_queue.enqueue("t", 1, idempotency_key="k")

    assert (again.id, again.created) == (first.id, False)


def test_duplicates_work_with_ids_beyond_what_a_float_can_count(queue: JobQueue, conn: Connection[DictRow]) -> None:
    for start in (2**31 - 3, 2**53 - 3):
        conn.execute(f"ALTER TABLE jobs ALTER COLUMN id RESTART WITH {start}")
        ids = [queue.enqueue("t").id for _ in range(6)]
        assert ids == list(range(start, start + 6))
        assert queue.get(ids[-1]).id == start + 5
