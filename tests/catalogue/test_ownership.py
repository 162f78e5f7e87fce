"""Ownership and stale writes: of two that write about one job, one wins and the other notices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.handlers import Registry
from pgq_core.maintenance import Maintenance
from pgq_core.queries import Queries
from pgq_core.queries.claims import FinishedJob
from pgq_core.settings import load_settings
from tests.catalogue.rows import add_running, add_worker, token
from tests.support.corridors import WORKER_ID, running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually_async


@pytest.mark.parametrize("rounds", [60, pytest.param(10_000, marks=pytest.mark.torture)])
async def test_of_a_finish_and_a_rescue_of_one_job_exactly_one_counts(
    database: QueueDatabase, maintenance: Maintenance, queries: Queries, conn: AsyncConnection[Any], rounds: int
) -> None:
    add_worker(database, "gone", stopped=True)
    finished, rescued = set(), set()

    for number in range(rounds):
        job_id = add_running(database, "gone", claimed_ago=60)
        write = FinishedJob(job_id, token(database, job_id), None, None)
        finish = queries.finish_jobs([write], worker_id="gone", slot=0)
        turns = [finish.fetch_all(conn), maintenance.reaper.run_once()]
        answers = await asyncio.gather(*(turns if number % 2 else reversed(turns)))
        (finished if [job_id] in answers else rescued).add(job_id)
        if job_id in rescued:
            database.run("DELETE FROM jobs WHERE id = %s AND status = 'pending'", job_id)

    assert {row["job_id"]: row["outcome"] for row in database.all("SELECT job_id, outcome FROM job_runs")} == {
        **dict.fromkeys(finished, "succeeded"),
        **dict.fromkeys(rescued, "lost"),
    }
    assert database.value("SELECT count(*) FROM job_runs") == rounds
    assert database.all("SELECT FROM jobs") == []
    assert database.all(FAULTS) == []


@pytest.mark.slow
async def test_jobs_of_a_worker_that_is_wrongly_taken_for_dead_end_once(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        await asyncio.sleep(0.01)

    jobs = [database.put("job", max_attempts=1) for _ in range(150)]
    settings = load_settings(dsn=database.dsn, heartbeat=0.05, stale_limit=0.15, reaper_interval=0.05)
    hasty = Maintenance(settings)

    async with running_corridor(database.dsn, registry, concurrency=10) as running:
        # From the first turn on its row is ended: what it claims is taken away from it, whatever it does.
        database.run("UPDATE workers SET state = 'lost', stopped_at = now()")
        async with asyncio.timeout(120):
            while database.all("SELECT FROM jobs LIMIT 1"):
                await hasty.reaper.run_once()
                await asyncio.sleep(0.015)
    await hasty.close()

    assert running.marks.late_writes > 0
    succeeded = {row["job_id"] for row in database.all("SELECT job_id FROM job_runs WHERE outcome = 'succeeded'")}
    dead = {row["id"] for row in database.all("SELECT original_job_id AS id FROM dead_letter_jobs")}
    assert succeeded | dead == set(jobs)
    assert not succeeded & dead
    last = database.all("SELECT DISTINCT ON (job_id) job_id, outcome FROM job_runs ORDER BY job_id, id DESC")
    assert {row["job_id"] for row in last if row["outcome"] == "succeeded"} == succeeded
    assert database.all(FAULTS) == []


async def test_outcome_is_held_while_the_server_takes_no_writes(database: QueueDatabase, registry: Registry) -> None:
    name = database.value("SELECT current_database()")
    go, started = asyncio.Event(), []

    @registry.handler("job")
    async def job(data: Any) -> None:
        started.append(data)
        await go.wait()

    first = database.put("job", "first")

    async with running_corridor(database.dsn, registry, concurrency=1) as running:
        await eventually_async(lambda: started == ["first"])
        database.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            sever_workers(database)
            go.set()
            await eventually_async(lambda: running.corridor.completer.is_in_trouble, timeout=30)
            second = database.put("job", "second")
            await asyncio.sleep(0.3)  # several polls
            assert started == ["first"]  # nothing is claimed meanwhile
            assert (database.job(first) or {})["status"] == "running"
        finally:
            database.run(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await eventually_async(lambda: database.outcomes(second) == ["succeeded"], timeout=30)

    assert database.outcomes(first) == ["succeeded"]
    assert started == ["first", "second"]
    assert database.all("SELECT FROM dead_letter_jobs") == []


def sever_workers(database: QueueDatabase) -> None:
    database.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE 'pgq worker%%'"
    )


async def test_jobs_of_those_who_stay_are_left_alone_when_one_leaves(
    database: QueueDatabase, maintenance: Maintenance, queries: Queries, conn: AsyncConnection[Any]
) -> None:
    for worker in ("leaver", "second", "third"):
        add_worker(database, worker)
    held = [add_running(database, worker) for worker in ("second", "third")]

    await queries.end_worker(
        worker_id="leaver",
        state="stopped",
        exit_code=0,
        exit_signal=None,
        exit_reason="asked to stop",
        last_output=None,
        finished=0,
        failed=0,
        late_writes=0,
    ).execute(conn)
    await maintenance.reaper.run_once()

    assert [(database.job(job_id) or {})["status"] for job_id in held] == ["running", "running"]
    assert database.value("SELECT count(*) FROM workers WHERE stopped_at IS NULL AND state = 'running'") == 2


async def test_no_advisory_lock_is_held_by_a_working_system(
    database: QueueDatabase, registry: Registry, maintenance: Maintenance
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        locks.append(database.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))

    locks: list[int] = []
    for key in range(20):
        database.put("job", idempotency_key=f"key {key}")

    async with running_corridor(database.dsn, registry, worker_id=WORKER_ID):
        await maintenance.reaper.run_once()
        await eventually_async(lambda: len(locks) == 20)

    assert set(locks) == {0}
