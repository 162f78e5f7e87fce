"""Jobs that appear in front of the bounds of a worker's claims are found all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect, connect_sync
from pgq_core.domain.job import JSON
from pgq_core.domain.stretch import Position
from pgq_core.handlers import Registry
from pgq_core.queries import Queries
from pgq_core.worker.careful_claims import CarefulClaims
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.search import Search
from pgq_core.worker.sweep import Sweep
from tests.conftest import SCHEMA
from tests.schema.statements import executed_plan, walk
from tests.support.corridors import RunningCorridor, running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

LONG_AGO = "now() - interval '1 hour'"


@pytest.fixture
def database(shared: QueueDatabase) -> QueueDatabase:
    return shared


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @registry.handler("noop")
    async def noop(data: JSON) -> None: ...

    return registry


def put(database: QueueDatabase, count: int, due: str = "now()", priority: int = 0) -> None:
    database.run(
        f'INSERT INTO jobs (payload, not_before, priority) SELECT \'{{"type": "noop"}}\', {due}, %s'
        " FROM generate_series(1, %s)",
        priority,
        count,
    )


def new_search() -> Search:
    queries, types = Queries(SCHEMA), ["noop"]
    careful = CarefulClaims(queries, worker_id="w", job_types=types)
    return Search(
        "default", queries, DatabaseClock(), worker_id="w", job_types=types, is_thorough=False, careful=careful
    )


async def bound_beyond(running: RunningCorridor, database: QueueDatabase) -> Search:
    """A search whose bound has passed everything that is older than a moment ago."""
    search = running.corridor.producer._searches["default"]

    async def has_moved() -> bool:
        put(database, 1)
        await asyncio.sleep(0.05)
        level = search.frontier.levels.get(0)
        return level is not None and level.bound > Position(
            0, database.value("SELECT extract(epoch FROM now()) - 60"), 0
        )

    await eventually_async(has_moved)
    return search


async def test_a_job_that_becomes_visible_late_is_found(database: QueueDatabase, registry: Registry) -> None:
    async with running_corridor(database.dsn, registry) as running:
        await bound_beyond(running, database)
        put(database, 1, due=LONG_AGO)
        await eventually_async(lambda: database.value("SELECT count(*) FROM jobs") == 0)


async def test_many_jobs_that_become_visible_late_are_all_found_soon(
    database: QueueDatabase, registry: Registry
) -> None:
    """As after a pause, or when a long transaction commits: too many for a sweep, so the claims go back for them."""
    database.run("INSERT INTO queues (name, paused) VALUES ('default', false)")
    async with running_corridor(database.dsn, registry) as running:
        await bound_beyond(running, database)
        database.run("UPDATE queues SET paused = true")
        put(database, 5000, due=LONG_AGO)
        before = running.marks.finished
        await asyncio.sleep(0.2)
        database.run("UPDATE queues SET paused = false")
        await eventually_async(lambda: running.marks.finished >= before + 5000)


async def test_a_raised_priority_is_seen(database: QueueDatabase, registry: Registry) -> None:
    gate = asyncio.Event()
    order: list[JSON] = []

    @registry.handler("slow")
    async def slow(data: JSON) -> None:
        order.append(data)
        await gate.wait()

    async with running_corridor(database.dsn, registry, concurrency=1) as running:
        await bound_beyond(running, database)
        await eventually_async(lambda: database.value("SELECT count(*) FROM jobs") == 0)
        for number in range(3):
            database.put("slow", number)
        await eventually_async(lambda: order)
        database.run("UPDATE jobs SET priority = 9 WHERE status = 'pending' AND payload -> 'data' = '2'")
        gate.set()
        await eventually_async(lambda: len(order) == 3)
    assert order == [0, 2, 1]


@pytest.fixture
async def searching(database: QueueDatabase) -> AsyncIterator[tuple[Search, AsyncConnection[Any]]]:
    search = new_search()
    async with await connect(database.dsn, application_name="search", pinned_plans=True) as conn:
        put(database, 2, due=LONG_AGO)
        assert len(await search.claim(conn, 1)) == 1  # and from here on it has a bound
        assert len(await search.claim(conn, 1)) == 1
        yield search, conn


async def test_jobs_that_were_locked_retried_or_promoted_keep_their_place(
    database: QueueDatabase, searching: tuple[Search, AsyncConnection[Any]]
) -> None:
    """Their rows bear the number of a transaction that has ended, some for good."""
    search, conn = searching
    put(database, 6, due="now() - interval '1 minute'")
    ids = [row["id"] for row in database.all("SELECT id FROM jobs WHERE status = 'pending' ORDER BY id")]
    database.run("SELECT FROM jobs WHERE id = %s FOR UPDATE", ids[0])
    database.run("UPDATE jobs SET not_before = now() + interval '1 hour' WHERE id = %s", ids[2])
    database.run("UPDATE jobs SET not_before = now() - interval '30 s' WHERE id = %s", ids[2])
    with psycopg.connect(database.dsn) as other:
        other.execute(f"UPDATE {SCHEMA}.jobs SET priority = 1 WHERE id = %s", (ids[1],))  # type: ignore[arg-type]
        other.rollback()
    claimed = await search.claim(conn, 5)
    await Queries(SCHEMA).release_jobs([(row.id, row.claim_token) for row in claimed[3:]]).fetch_all(conn)

    assert [row.id for row in claimed] == [ids[0], ids[1], ids[3], ids[4], ids[5]]
    search.frontier.reset()
    assert [row.id for row in await search._claim_behind(conn, 3)] == [ids[4], ids[5], ids[2]]


async def test_a_job_that_was_held_when_the_claim_came_by_is_found_by_the_sweep(
    database: QueueDatabase, searching: tuple[Search, AsyncConnection[Any]]
) -> None:
    search, conn = searching
    put(database, 3, due="now() - interval '1 minute'")
    held, *free = [row["id"] for row in database.all("SELECT id FROM jobs WHERE status = 'pending' ORDER BY id")]
    with psycopg.connect(database.dsn) as other:
        other.execute(f"SELECT FROM {SCHEMA}.jobs WHERE id = %s FOR UPDATE", (held,))  # type: ignore[arg-type]
        assert [row.id for row in await search.claim(conn, 2)] == free

    assert await look(search, conn) == [held]


async def test_rows_that_others_hold_are_passed_over_without_asking_for_their_locks(
    database: QueueDatabase, searching: tuple[Search, AsyncConnection[Any]]
) -> None:
    search, _ = searching
    put(database, 110, due="now() - interval '1 minute'")
    with psycopg.connect(database.dsn) as other:
        held = f"SELECT FROM {SCHEMA}.jobs WHERE status = 'pending' ORDER BY id LIMIT 100 FOR UPDATE"
        other.execute(held.encode())
        database.run("ANALYZE jobs")
        plan = explain_claim(database, search, search.frontier.stretches(), is_thorough=False)

    (locking,) = [node for node in walk(plan) if node["Node Type"] == "LockRows"]
    (scan,) = locking["Plans"]
    found, passed_over = scan["Actual Rows"], scan["Rows Removed by Filter"]  # of a stretch, on average
    assert (found * scan["Actual Loops"], passed_over * scan["Actual Loops"]) == (10, 100)


async def test_where_sweeps_are_long_one_process_at_a_time_makes_them(database: QueueDatabase) -> None:
    search = new_search()
    async with await connect(database.dsn, application_name="search", pinned_plans=True) as conn:
        put(database, 2)
        assert len(await search.claim(conn, 1)) == 1
        assert len(await search.claim(conn, 5)) == 1  # and from here on the bound trails the clock
        late = database.put("noop", not_before=database.value(f"SELECT {LONG_AGO}"))
        turn = search.turn
        database.run("INSERT INTO leases (name, holder, expires_at) VALUES (%s, 'other', now() + interval '9 s')", turn)

        assert await look(search, conn) == []
        database.run("UPDATE leases SET expires_at = now() WHERE name = %s", turn)
        assert await look(search, conn) == [late]


async def test_a_stranger_who_has_locked_the_turn_keeps_nobody_from_claiming(database: QueueDatabase) -> None:
    search = new_search()
    async with await connect(database.dsn, application_name="search", pinned_plans=True, lock_limit=0.1) as conn:
        database.run("INSERT INTO leases (name, holder, expires_at) VALUES (%s, 'other', now())", search.turn)
        with psycopg.connect(database.dsn) as stranger:
            stranger.execute("SELECT FROM leases FOR UPDATE")
            job_id = database.put("noop")
            assert await look(search, conn) == [job_id]


async def look(search: Search, conn: AsyncConnection[Any]) -> list[int]:
    """A claim with a sweep that nobody knows to be quick."""
    search.frontier.forget_marks()  # which a machine that stood still for a moment has set
    search.sweep = Sweep(search.frontier)
    return [row.id for row in await search.claim(conn, 10)]


async def test_dead_entries_in_front_of_the_bound_are_not_walked_again(
    database: QueueDatabase, registry: Registry
) -> None:
    with psycopg.connect(database.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT 1")
        async with running_corridor(database.dsn, registry, concurrency=20) as running:
            search = await bound_beyond(running, database)
            before = running.marks.finished
            put(database, 20_000)
            await eventually_async(lambda: running.marks.finished >= before + 20_000)
            stretches = search.frontier.stretches()
            plan = explain_claim(database, search, stretches)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100


def explain_claim(database: QueueDatabase, search: Search, stretches: Any, *, is_thorough: bool = True) -> Any:
    statement = search._queries.claim_jobs(
        queue="default",
        worker_id="nobody",
        limit=10,
        job_types=["noop"],
        lease=None,
        stretches=stretches,
        is_thorough=is_thorough,
    )
    with connect_sync(database.dsn, application_name="plans", pinned_plans=True) as conn:
        return executed_plan(conn, statement, SCHEMA)["Plan"]
