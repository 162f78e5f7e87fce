"""Dead rows of a busy table go within seconds, where that is worth the work and hurts nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgq_core.maintenance import Maintenance, vacuum
from pgq_core.maintenance.vacuum import FEWEST, LARGEST, LONGEST_REST, SUSTAINED, JobsVacuum, is_worth_it
from pgq_core.queries.upkeep import DeadRowsRow
from pgq_core.settings import load_settings
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually, eventually_async

DEAD = "SELECT pg_stat_get_dead_tuples('jobs'::regclass)"
VACUUMED = "SELECT pg_stat_get_vacuum_count('jobs'::regclass)"
END_WHO_WAITS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE application_name = 'pgq maintenance' AND wait_event_type = 'BufferPin'"""
JOBS = 2000


@pytest.fixture
def database(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueDatabase]:
    """Its autovacuum leaves the jobs to us."""
    monkeypatch.setattr(vacuum, "FEWEST", JOBS)
    database = QueueDatabase(dsn)
    database.run("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    yield database
    database.close()


def put(database: QueueDatabase, count: int, payload: str = '{"type": "noop"}') -> None:
    database.run("INSERT INTO jobs (payload) SELECT %s::jsonb FROM generate_series(1, %s)", payload, count)


def leave_dead_rows(database: QueueDatabase) -> None:
    put(database, JOBS)
    database.run("DELETE FROM jobs WHERE payload -> 'data' IS NULL")
    eventually(lambda: database.value(DEAD) >= JOBS)


@pytest.fixture
async def maintenance(database: QueueDatabase) -> AsyncIterator[Maintenance]:
    maintenance = Maintenance(load_settings(dsn=database.dsn))
    yield maintenance
    await maintenance.close()


async def test_what_stays_many_is_removed(
    database: QueueDatabase, maintenance: Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_dead_rows(database)

    for _ in range(3):
        await maintenance.vacuum.run_once()
    assert database.value(VACUUMED) == 0
    monkeypatch.setattr(vacuum, "SUSTAINED", 0.0)
    await maintenance.vacuum.run_once()

    assert database.value(VACUUMED) == 1
    assert database.value(DEAD) == 0


async def test_a_burst_that_autovacuum_has_cleared_meanwhile_counts_anew(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    duty = maintenance.vacuum
    leave_dead_rows(database)
    await duty.run_once()
    duty._many_since = time.monotonic() - 2 * SUSTAINED
    database.run("VACUUM jobs")
    await duty.run_once()
    leave_dead_rows(database)
    await duty.run_once()

    assert database.value(VACUUMED) == 1


async def test_behind_a_held_snapshot_it_rests_longer_each_time(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    with psycopg.connect(database.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT 1")
        leave_dead_rows(database)
        duty = maintenance.vacuum
        rests = [await rest_after_vacuum(duty) for _ in range(6)]

    assert database.value(VACUUMED) == 6
    assert database.value(DEAD) >= JOBS
    assert rests == sorted(rests)
    assert rests[0] > SUSTAINED
    assert rests[-1] <= LONGEST_REST


async def rest_after_vacuum(duty: JobsVacuum) -> int:
    """Seconds."""
    duty.rest(0.0)
    duty._many_since = time.monotonic() - SUSTAINED
    await duty.run_once()
    return round(duty._rests_until - time.monotonic())


async def test_it_does_not_wait_for_who_has_the_table(database: QueueDatabase, maintenance: Maintenance) -> None:
    leave_dead_rows(database)
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE pgq_core.jobs IN SHARE UPDATE EXCLUSIVE MODE")
        rest = await rest_after_vacuum(maintenance.vacuum)

    assert rest > SUSTAINED
    assert database.value(VACUUMED) == 0
    assert maintenance.is_leader


@pytest.fixture
def still(database: QueueDatabase) -> Iterator[None]:
    """Somebody stands still in a page of the primary key, and dead rows lie behind it."""
    put(database, 100, '{"type": "noop", "data": {}}')
    database.run("VACUUM jobs")  # then the index alone tells the ids, and a reader of it keeps its page
    leave_dead_rows(database)
    with psycopg.connect(database.dsn) as reader:
        reader.execute("SET enable_seqscan = off")
        reader.execute("SET enable_bitmapscan = off")
        reader.execute("DECLARE here CURSOR FOR SELECT id FROM pgq_core.jobs ORDER BY id")
        reader.execute("FETCH 50 FROM here")
        yield


@pytest.mark.usefixtures("still")
async def test_behind_somebody_who_stands_still_it_gives_up_and_leaves_the_session_as_it_was(
    database: QueueDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "LIMIT_MS", 300)
    own = make_conninfo(database.dsn, options="-c statement_timeout=12345 -c vacuum_cost_delay=100")
    maintenance = Maintenance(load_settings(dsn=own))
    rest = await rest_after_vacuum(maintenance.vacuum)

    assert rest > SUSTAINED
    assert database.value(DEAD) >= JOBS
    assert maintenance.health()["vacuum"].failures == 0
    async with maintenance._leadership.lead() as conn:
        assert conn is not None
        assert await (await conn.execute("SHOW statement_timeout")).fetchone() == ("12345ms",)
    await maintenance.close()


@pytest.mark.usefixtures("still")
async def test_a_session_that_ends_in_the_middle_is_no_reason_to_try_again_at_once(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    vacuuming = asyncio.ensure_future(rest_after_vacuum(maintenance.vacuum))
    await eventually_async(lambda: database.all(END_WHO_WAITS) != [])

    with pytest.raises(psycopg.OperationalError):
        await vacuuming
    assert not maintenance.vacuum.is_rested()


@pytest.mark.parametrize(
    ("rows", "is_worth"),
    [
        (DeadRowsRow(dead=FEWEST, live=0, bytes=2**20, may_vacuum=True), True),
        (DeadRowsRow(dead=FEWEST - 1, live=0, bytes=2**20, may_vacuum=True), False),
        (DeadRowsRow(dead=FEWEST, live=5 * FEWEST, bytes=2**28, may_vacuum=True), True),
        (DeadRowsRow(dead=FEWEST, live=5 * FEWEST + 1, bytes=2**28, may_vacuum=True), False),
        (DeadRowsRow(dead=100 * FEWEST, live=0, bytes=LARGEST + 1, may_vacuum=True), False),
        (DeadRowsRow(dead=FEWEST, live=0, bytes=2**20, may_vacuum=False), False),
    ],
)
def test_what_is_worth_a_vacuum(rows: DeadRowsRow, is_worth: bool) -> None:
    assert is_worth_it(rows) is is_worth
