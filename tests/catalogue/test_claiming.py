"""Claiming, ordering and locks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from structlog.testing import capture_logs

from pgq_core import JobQueue
from pgq_core.database import connect
from pgq_core.handlers import Registry
from pgq_core.maintenance import Maintenance
from pgq_core.queries import Queries
from pgq_core.queries.claims import FinishedJob, RescheduledJob
from tests.catalogue.rows import add_running, add_worker
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually_async
from tests.torture import form


async def test_recovered_jobs_keep_their_place(
    database: QueueDatabase, queue: JobQueue, maintenance: Maintenance
) -> None:
    jobs = [(database.put("job", priority=priority), priority) for priority in (1, 9) for _ in range(10)]
    for job in queue.claim("default", 3, lease=60, worker_id="loop"):
        queue.release(job)
    add_worker(database, "gone", stopped=True)
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'gone', locked_at = now(), "
        "claim_token = nextval('claim_token_seq') WHERE id %% 3 = 0"
    )

    await maintenance.reaper.run_once()

    order = [claimed.id for claimed in queue.claim("default", 20)]
    assert order == [job_id for job_id, _ in sorted(jobs, key=lambda job: (-job[1], job[0]))]


def test_waiting_behind_a_steady_flow_of_urgent_work_can_be_seen(database: QueueDatabase, queue: JobQueue) -> None:
    """Priority is strict: what waits behind it is not moved ahead in secret, its age is shown."""
    patient = database.put("job", priority=-5, not_before="2020-01-01")
    for _ in range(30):
        database.put("job", priority=5)
        (claimed,) = queue.claim("default", 1)
        assert claimed.priority == 5
        queue.complete(claimed)

    oldest = database.value("SELECT min(not_before) FROM jobs WHERE status = 'pending'")
    assert (database.job(patient) or {})["not_before"] == oldest
    (claimed,) = queue.claim("default", 1)
    assert claimed.id == patient


Turn = Callable[[AsyncConnection[Any]], Awaitable[None]]
ORPHAN = (
    "UPDATE pgq_core.jobs SET locked_by = 'silent' WHERE id IN (SELECT id FROM pgq_core.jobs "
    "WHERE status = 'running' LIMIT 5 FOR UPDATE SKIP LOCKED)"
)


@pytest.mark.parametrize("seconds", [1.5, pytest.param(form.seconds(60.0, 20.0), marks=pytest.mark.torture)])
async def test_batches_that_meet_in_every_order_do_not_deadlock(
    database: QueueDatabase, queries: Queries, maintenance: Maintenance, seconds: float
) -> None:
    add_worker(database, "silent", stopped=True)
    dead_before = deadlocks(database)
    stop = asyncio.Event()
    failures: list[str] = []

    async def repeat(turn: Turn) -> None:
        async with await connect(database.dsn, application_name="test batch", pinned_plans=True) as connection:
            while not stop.is_set():
                try:
                    await turn(connection)
                except psycopg.Error as error:
                    failures.append(repr(error))

    async def claim(conn: AsyncConnection[Any]) -> None:
        await claim_and_end(conn, queries)

    async def orphan(conn: AsyncConnection[Any]) -> None:
        await conn.execute(ORPHAN)
        await maintenance.reaper.run_once()

    turns: list[Turn] = [*([claim] * 4), cancel_some, orphan, fill_up]
    tasks = [asyncio.create_task(repeat(turn)) for turn in turns]
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.gather(*tasks)

    assert failures == []
    assert deadlocks(database) == dead_before
    assert database.all("SELECT FROM dead_letter_jobs WHERE reason <> 'crash_loop'") == []
    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'succeeded'") > 0


async def claim_and_end(conn: AsyncConnection[Any], queries: Queries) -> None:
    """A batch of each kind, its rows in any order."""
    claim = queries.claim_jobs(queue="default", worker_id="loop", limit=40, job_types=None, lease=None)
    rows = await claim.fetch_all(conn)
    random.shuffle(rows)
    half = len(rows) // 2
    done = [FinishedJob(row.id, row.claim_token, None, None) for row in rows[:half]]
    again = [RescheduledJob(row.id, row.claim_token, "loop", None, None, "retried", delay=0.0) for row in rows[half:]]
    await queries.finish_jobs(done, worker_id="loop", slot=0).fetch_all(conn)
    await queries.reschedule_jobs(again, slot=1).fetch_all(conn)


async def cancel_some(conn: AsyncConnection[Any]) -> None:
    cursor = await conn.execute("SELECT id FROM pgq_core.jobs ORDER BY random() LIMIT 20")
    for (job_id,) in await cursor.fetchall():
        await conn.execute("SELECT pgq_core.cancel(%s)", (job_id,))


async def fill_up(conn: AsyncConnection[Any]) -> None:
    await conn.execute(
        'INSERT INTO pgq_core.jobs (payload, max_attempts) SELECT \'{"type": "job"}\', 100000 '
        "FROM generate_series(1, 100) WHERE (SELECT count(*) < 500 FROM pgq_core.jobs)"
    )
    await asyncio.sleep(0.01)


def deadlocks(database: QueueDatabase) -> int:
    return int(database.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
async def test_isolation_of_the_administrator_fails_no_job(
    database: QueueDatabase, registry: Registry, isolation: str
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    try:
        with JobQueue(database.dsn, registry=registry, timeout=20) as queue, ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda n: queue.enqueue("job", n % 100, idempotency_key=str(n % 100)), range(200)))
            queue.enqueue_many([("job", n) for n in range(300)])
        async with (
            running_corridor(database.dsn, registry, worker_id="one"),
            running_corridor(database.dsn, registry, worker_id="two"),
        ):
            await eventually_async(lambda: database.all("SELECT FROM jobs LIMIT 1") == [], timeout=60)
    finally:
        database.run(f"ALTER DATABASE {name} RESET default_transaction_isolation")

    assert database.all("SELECT outcome, count(*)::int AS n FROM job_runs GROUP BY 1") == [
        {"outcome": "succeeded", "n": 400}
    ]
    assert database.all(FAULTS) == []


async def test_claim_that_is_cut_short_is_said_and_repeated(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET statement_timeout = '100ms'")
    try:
        with capture_logs() as logs:
            async with running_corridor(database.dsn, registry):
                async with await AsyncConnection.connect(database.dsn) as holder:
                    await holder.execute("SET statement_timeout = 0")
                    await holder.execute("LOCK TABLE pgq_core.jobs IN ACCESS EXCLUSIVE MODE")
                    await eventually_async(
                        lambda: any(line["event"] == "claims_wait_for_database" for line in logs), timeout=30
                    )
                job_id = database.put("job")
                await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"], timeout=30)
    finally:
        database.run(f"ALTER DATABASE {name} RESET statement_timeout")

    said = [line for line in logs if line["event"] == "claims_wait_for_database"]
    assert len(said) == 1  # not once per try
    assert "statement timeout" in str(said[0])


async def test_claim_uses_the_index_of_what_can_run_on_stale_statistics(
    database: QueueDatabase, queries: Queries
) -> None:
    """The statistics say that the table is empty, and it holds ten thousand jobs that are not due."""
    database.run("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    try:
        database.run("TRUNCATE jobs, job_keys")
        database.run("ANALYZE jobs")
        database.run(
            "INSERT INTO jobs (payload, not_before, priority) "
            "SELECT '{\"type\": \"job\"}', now() + interval '1 day', 9 FROM generate_series(1, 10000)"
        )
        add_running(database, "nobody")
        database.put("job")
        statement = queries.claim_jobs(queue="default", worker_id="w", limit=10, job_types=["job"], lease=None)
        connection = await connect(database.dsn, application_name="test", pinned_plans=True)
        async with connection:
            cursor = await connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {statement.text}", statement.params
            )
            plan = "\n".join(row[0] for row in await cursor.fetchall())
    finally:
        database.run("ALTER TABLE jobs RESET (autovacuum_enabled)")

    assert "jobs_ready_idx" in plan
    assert "Seq Scan on jobs" not in plan
