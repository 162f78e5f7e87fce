"""The connections of a queue: opened late, replaced when dead, never shared with a child, waited for within bounds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from textwrap import dedent
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier, Literal

from pgq_core import AsyncJobQueue, JobQueue
from pgq_core.errors import DatabaseUnavailable, InvalidJob, QueueClosed
from pgq_core.job_queue import connections
from tests.queue.rows import rows, value
from tests.support.databases import database_dsn
from tests.support.waiting import eventually, eventually_async

OURS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pgq queue'"


def end_sessions(conn: Connection[DictRow]) -> None:
    """Until none is left: a pool opens new ones behind the first look."""
    eventually(lambda: not rows(conn, "SELECT pg_terminate_backend(pid) FROM (" + OURS + ") ours"))


@pytest.mark.parametrize("kind", [JobQueue, AsyncJobQueue])
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("timeout", wrong) for wrong in (0, -1, 1e-4, float("nan"), float("inf"), 1e12, "5", None, True)),
        *(("max_connections", wrong) for wrong in (0, -1, 1.5, 10**6, "5", None, True)),
        *(("max_payload", wrong) for wrong in (0, -1, 1.5, "5")),
        *(("max_attempts", wrong) for wrong in (0, "x")),
        *(("schema", wrong) for wrong in (5, "a\x00")),
        *(("dsn", wrong) for wrong in (None, 5, "host=a\x00b")),
        *(("application_name", wrong) for wrong in (None, "a\x00")),
        ("registry", 5),
    ],
)
def test_what_no_queue_can_be_made_with_is_refused_at_once(
    dsn: str, kind: type[JobQueue | AsyncJobQueue], field: str, wrong: Any
) -> None:
    """Each was an error of some library's at the first call, or a call that never ended."""
    with pytest.raises(InvalidJob) as refused:
        kind(**{"dsn": dsn, field: wrong})

    assert refused.value.field == field


def test_a_queue_of_the_largest_patience_serves(dsn: str) -> None:
    with JobQueue(dsn, timeout=timedelta(days=24).total_seconds(), max_connections=1, max_payload=2) as queue:
        assert queue.enqueue("t").created
        assert queue.enqueue("t", idempotency_key="k").created


def test_no_connection_is_opened_before_the_first_use(dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(dsn) as queue:
        assert rows(conn, OURS) == []
        queue.enqueue("t")
        assert len(rows(conn, OURS)) == 1
    eventually(lambda: not rows(conn, OURS))


async def test_connections_that_the_server_ended_are_replaced_without_an_error(
    queue: JobQueue, async_queue: AsyncJobQueue, conn: Connection[DictRow]
) -> None:
    for _ in range(3):
        queue.enqueue("t")
        await async_queue.enqueue("t")
        end_sessions(conn)

    queue.enqueue("t")
    await async_queue.enqueue("t")

    assert value(conn, "SELECT count(*) FROM jobs") == 8


async def test_an_outage_is_a_bounded_error_and_the_queue_goes_on_afterwards(
    dsn: str, conn: Connection[DictRow]
) -> None:
    name = Identifier(conn.info.dbname)
    server = database_dsn(dsn, "postgres")
    with psycopg.connect(server, autocommit=True) as elsewhere, JobQueue(dsn, timeout=3) as queue:
        async with AsyncJobQueue(dsn, timeout=3) as async_queue:
            queue.enqueue("t")
            await async_queue.enqueue("t")
            elsewhere.execute(SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
            end_sessions(conn)
            with pytest.raises(DatabaseUnavailable, match="not currently accepting connections"):
                queue.enqueue("t")
            with pytest.raises(DatabaseUnavailable, match="not currently accepting connections"):
                await async_queue.enqueue("t")

            elsewhere.execute(SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))

            eventually(lambda: _works(queue))
            await eventually_async(lambda: _works_async(async_queue))


def _works(queue: JobQueue) -> bool:
    try:
        return queue.enqueue("t").created
    except DatabaseUnavailable:
        return False


async def _works_async(queue: AsyncJobQueue) -> bool:
    try:
        return (await queue.enqueue("t")).created
    except DatabaseUnavailable:
        return False


def test_a_pool_in_full_use_is_a_bounded_error(dsn: str) -> None:
    with JobQueue(dsn, max_connections=1, timeout=2) as queue:
        taken = queue._connections.take()
        with pytest.raises(DatabaseUnavailable, match=r"2\.00 sec"):
            queue.enqueue("t")
        queue._connections.give_back(taken)

        assert queue.enqueue("t").created


def test_a_statement_that_waits_too_long_for_a_lock_is_a_bounded_error(dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(dsn, timeout=2) as queue:
        queue.enqueue("t")
        with conn.transaction():
            conn.execute("LOCK TABLE jobs")
            with pytest.raises(DatabaseUnavailable, match="statement timeout"):
                queue.enqueue("t")

        assert queue.enqueue("t").created


def set_read_only(conn: Connection[DictRow], is_read_only: bool) -> None:
    """For sessions that begin from now on, as on a server whose disk is full."""
    statement = SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    conn.execute(statement.format(Identifier(conn.info.dbname), Literal(is_read_only)))


def keep_sessions(queue: JobQueue, count: int) -> None:
    """At hand and in the pool."""
    taken = [queue._connections.take() for _ in range(count)]
    for session in taken:
        queue._connections.give_back(session)


@pytest.mark.parametrize("key", [None, "k"])
def test_after_a_read_only_server_one_call_fails_at_most(
    dsn: str, conn: Connection[DictRow], monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    """A session that began before the server took writes again stays read-only: none of those kept is any use."""
    monkeypatch.setattr(connections, "DISTRUST_EVERY", 0.0)
    set_read_only(conn, True)
    with JobQueue(dsn, timeout=20) as queue:
        keep_sessions(queue, 6)
        with pytest.raises(DatabaseUnavailable, match="read-only"):
            queue.enqueue("t", idempotency_key=key)
        keep_sessions(queue, 6)
        lent = queue._connections.take()
        set_read_only(conn, False)

        with pytest.raises(DatabaseUnavailable, match="read-only"):
            queue.enqueue("t", idempotency_key=key)
        queue._connections.give_back(lent)  # was with another thread meanwhile

        for _ in range(8):
            queue.enqueue("t", idempotency_key=key)
        with ThreadPoolExecutor(8) as threads:
            assert len(list(threads.map(lambda _: queue.enqueue("u"), range(40)))) == 40


def test_a_read_only_server_is_not_asked_for_a_new_session_with_every_call(
    dsn: str, conn: Connection[DictRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DISTRUST_EVERY", 3600.0)
    set_read_only(conn, True)
    with JobQueue(dsn, timeout=20) as queue:
        sessions = set()
        for _ in range(10):
            with pytest.raises(DatabaseUnavailable, match="read-only"):
                queue.enqueue("t")
            session = queue._connections.take()
            sessions.add(session.info.backend_pid)
            queue._connections.give_back(session)

    assert len(sessions) <= 2


async def test_after_a_read_only_server_one_asynchronous_call_fails_at_most(
    dsn: str, conn: Connection[DictRow]
) -> None:
    set_read_only(conn, True)
    async with AsyncJobQueue(dsn, timeout=20) as queue:
        taken = [await queue._connections.take() for _ in range(6)]
        for session in taken[1:]:
            await queue._connections.give_back(session)
        set_read_only(conn, False)

        with pytest.raises(DatabaseUnavailable, match="read-only"):
            await queue.enqueue("t", idempotency_key="k")
        await queue._connections.give_back(taken[0])

        for _ in range(8):
            await queue.enqueue("t", idempotency_key="k")
        assert len(await asyncio.gather(*(queue.enqueue("u") for _ in range(40)))) == 40


def test_many_threads_share_a_queue(queue: JobQueue, conn: Connection[DictRow]) -> None:
    with ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(lambda number: queue.enqueue("t", number).id, range(300)))

    assert len(set(ids)) == 300
    assert len(rows(conn, OURS)) <= 10


async def test_many_tasks_share_a_queue_and_a_cancelled_one_leaves_it_usable(
    async_queue: AsyncJobQueue, conn: Connection[DictRow]
) -> None:
    answers = await asyncio.gather(*(async_queue.enqueue("t", number) for number in range(100)))
    with conn.transaction():
        conn.execute("LOCK TABLE jobs")
        stuck = asyncio.create_task(async_queue.enqueue("stuck"))
        await asyncio.to_thread(eventually, lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted"))
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck

    assert len({answer.id for answer in answers}) == 100
    assert (await async_queue.enqueue("t")).created
    assert value(conn, "SELECT count(*) FROM jobs WHERE job_type = 'stuck'") == 0


def test_calls_that_meet_a_close_say_that_the_queue_is_closed(dsn: str, conn: Connection[DictRow]) -> None:
    """Some wait for a connection then, some have one, some have just looked whether the queue is open."""
    stored: list[int] = []

    def enqueue_on(queue: JobQueue) -> None:
        while True:
            stored.append(queue.enqueue("t").id)

    with ThreadPoolExecutor(8) as threads:
        for _ in range(3):
            queue, before = JobQueue(dsn, max_connections=3, timeout=20), len(stored)
            asking = [threads.submit(enqueue_on, queue) for _ in range(8)]
            eventually(lambda count=before + 20: len(stored) > count)  # type: ignore[misc]
            queue.close()
            errors = [call.exception(60) for call in asking]
            assert [type(error) for error in errors] == [QueueClosed] * 8, errors

    assert {job["id"] for job in rows(conn, "SELECT id FROM jobs")} == set(stored)
    eventually(lambda: not rows(conn, OURS))


async def test_asynchronous_calls_that_meet_a_close_say_so_too(dsn: str, conn: Connection[DictRow]) -> None:
    queue = AsyncJobQueue(dsn, max_connections=2, timeout=20)
    await queue.enqueue("t")

    async def enqueue() -> None:
        while True:
            await queue.enqueue("t")

    asking = [asyncio.create_task(enqueue()) for _ in range(8)]
    await asyncio.sleep(0.1)
    await queue.close()
    errors = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 60)

    assert [type(error) for error in errors] == [QueueClosed] * 8, errors
    await asyncio.to_thread(eventually, lambda: not rows(conn, OURS))


def test_a_call_that_waits_for_a_connection_when_the_queue_is_closed(dsn: str) -> None:
    queue = JobQueue(dsn, max_connections=1, timeout=20)
    taken = queue._connections.take()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(queue.enqueue, "t")
        eventually(lambda: queue._connections._waiting)
        queue.close()
        with pytest.raises(QueueClosed):
            waiting.result(60)
    queue._connections.give_back(taken)

    assert taken.closed


def test_an_asynchronous_queue_belongs_to_one_event_loop(dsn: str) -> None:
    queue = AsyncJobQueue(dsn)

    async def use_and_close() -> None:
        await queue.enqueue("t")
        await queue.close()

    async def use() -> None:
        with pytest.raises(QueueClosed, match="another event loop"):
            await queue.enqueue("t")

    asyncio.run(use_and_close())
    asyncio.run(use())


@pytest.mark.parametrize(("prepare", "statements"), [(True, True), (False, False)])
def test_prepared_statements_can_be_switched_off(dsn: str, prepare: bool, statements: bool) -> None:
    with JobQueue(dsn, prepare=prepare) as queue:
        for _ in range(10):
            queue.enqueue("t")
        queue.enqueue("t", idempotency_key="k")
        session = queue._connections.take()
        prepared = session.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        queue._connections.give_back(session)

    assert prepared is not None
    assert (prepared[0] > 0) is statements


def test_a_queue_behind_a_pooler_asks_for_no_session_settings(dsn: str) -> None:
    assert "options" in JobQueue(dsn)._connections._target.conninfo
    assert "options" not in JobQueue(dsn, prepare=False)._connections._target.conninfo


def run_program(text: str, *arguments: str) -> str:
    """A program of its own: forking the test process itself would take its threads along."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", dedent(text), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_child_has_connections_of_its_own(dsn: str, conn: Connection[DictRow]) -> None:
    run_program(
        """
        import os, sys
        from pgq_core import JobQueue

        queue = JobQueue(sys.argv[1], timeout=20)
        queue.enqueue("parent")
        for round_number in range(10):
            child = os.fork()
            if child == 0:
                queue.enqueue("child")
                queue.enqueue("child", idempotency_key=f"child {round_number}")
                if round_number % 2:
                    os._exit(0)
                queue.close()
                sys.exit(0)
            queue.enqueue("parent", idempotency_key=f"parent {round_number}")
            assert os.waitpid(child, 0)[1] == 0
            queue.enqueue("parent")
        """,
        dsn,
    )

    counted = {r["job_type"]: r["n"] for r in rows(conn, "SELECT job_type, count(*) AS n FROM jobs GROUP BY 1")}
    assert counted == {"parent": 21, "child": 20}


def test_children_of_multiprocessing_share_nothing(dsn: str, conn: Connection[DictRow]) -> None:
    out = run_program(
        """
        import multiprocessing, sys
        from pgq_core import JobQueue

        queue = JobQueue(sys.argv[1], timeout=20)
        queue.enqueue("warm")

        def work(number):
            ids = [queue.enqueue("child", [number, n]).id for n in range(20)]
            for job in queue.claim("default", 10):
                queue.fail(job, "again")
            return ids, queue._verbs.claiming._random.random()

        with multiprocessing.get_context("fork").Pool(4) as pool:
            answers = pool.map(work, range(8), chunksize=1)
        assert queue.enqueue("warm").created
        ids = [job_id for some, _ in answers for job_id in some]
        assert len(set(ids)) == len(ids) == 160
        print(len({drawn for _, drawn in answers}))
        """,
        dsn,
    )

    assert out.strip() == "8", "jitter differs in every child"
    assert value(conn, "SELECT count(DISTINCT payload) FROM jobs WHERE job_type = 'child'") == 160


async def test_an_asynchronous_queue_can_be_used_in_a_forked_child(dsn: str, conn: Connection[DictRow]) -> None:
    await asyncio.to_thread(
        run_program,
        """
        import asyncio, os, sys
        from pgq_core import AsyncJobQueue

        queue = AsyncJobQueue(sys.argv[1], timeout=20)

        async def parent():
            await queue.enqueue("parent")
            child = os.fork()
            if child == 0:
                os.execv(sys.executable, [sys.executable, "-c", ""])
            os.waitpid(child, 0)
            await queue.enqueue("parent")
            await queue.close()

        async def work():
            await queue.enqueue("child")
            await queue.close()

        child = os.fork()
        asyncio.run(work() if child == 0 else parent())
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """,
        dsn,
    )

    assert value(conn, "SELECT count(*) FROM jobs") == 3
