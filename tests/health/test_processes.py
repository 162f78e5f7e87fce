"""A loop of a real process that has stopped turning is a failed check, not a silent one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from pgq_core.cli.checkup import Finding, Verdict, check_up
from pgq_core.domain.snapshot import Overview, WorkerView
from pgq_core.inspector import Inspector
from pgq_core.maintenance import Maintenance
from pgq_core.metrics.figures import LoopFigures
from pgq_core.metrics.reader import MetricsReader
from pgq_core.queries import Queries
from pgq_core.runtime import Database
from pgq_core.settings import Settings, load_settings
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase
from tests.support.signals import suspend
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import Workers, workers_on

STALE_LIMIT = 5.0
"""Long enough that a busy machine beats in time, since who does not is replaced."""
PATIENCE = 40.0
RUNNER_LOOPS = {"heartbeat", "claim", "announce", "finish", "tend", "watchdog", "watch", "sweep"}


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = QueueDatabase(dsn)
    yield database
    database.close()


@pytest.fixture
def workers(database: QueueDatabase, tmp_path: Path) -> Iterator[Workers]:
    with workers_on(database, tmp_path) as started:
        yield started


def settings_of(database: QueueDatabase) -> Settings:
    return load_settings(dsn=database.dsn, heartbeat=0.2, stale_limit=STALE_LIMIT)


def findings(database: QueueDatabase, check: str = "loops") -> list[Finding]:
    found = check_up(settings_of(database), Database(database.dsn, SCHEMA, is_embedded=False))
    return [finding for finding in found if finding.check == check]


def failures(database: QueueDatabase) -> list[str]:
    return [finding.detail for finding in findings(database) if finding.verdict is Verdict.FAIL]


async def overview(database: QueueDatabase) -> Overview:
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as conn:
        return await Inspector(Queries(SCHEMA), stale_limit=timedelta(seconds=STALE_LIMIT)).overview(conn)


async def the_worker(database: QueueDatabase) -> WorkerView:
    return (await overview(database)).workers[0]


@pytest.mark.slow
async def test_a_stalled_claim_loop_is_named_and_a_turning_one_is_not(
    database: QueueDatabase, workers: Workers
) -> None:
    workers.start(stale_limit=STALE_LIMIT, heartbeat=0.5)
    seen = await eventually_async(lambda: _told(database), timeout=PATIENCE)
    assert {loop.name for loop in seen.loops} >= RUNNER_LOOPS | {"reaper", "promoter", "retention"}
    eventually(lambda: not failures(database), timeout=PATIENCE, interval=0.1)

    with psycopg.connect(database.dsn) as holder:
        holder.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")  # claims wait, reads do not
        eventually(lambda: _names_claim(failures(database)), timeout=PATIENCE, interval=0.1)
        # Loops that need no row of jobs go on meanwhile; on a busy machine each may be late for a moment.
        await eventually_async(lambda: _only_claim_stalls(database), timeout=PATIENCE, interval=0.1)
        figures = await _loops_in_metrics(database)

    assert figures["claim"].stalled == 1
    assert figures["claim"].oldest > STALE_LIMIT
    eventually(lambda: not failures(database), timeout=PATIENCE, interval=0.1)


def _names_claim(faults: list[str]) -> bool:
    return any(fault.startswith("worker ") and ": claim has not turned for" in fault for fault in faults)


async def _only_claim_stalls(database: QueueDatabase) -> bool:
    stalled = {loop.name for loop in (await the_worker(database)).stalled_loops}
    return "claim" in stalled and not stalled & {"heartbeat", "finish", "watch", "watchdog", "tend"}


@pytest.mark.slow
async def test_outcomes_that_cannot_be_written_stall_the_finish_loop(database: QueueDatabase, workers: Workers) -> None:
    workers.start("--no-maintenance", stale_limit=STALE_LIMIT, heartbeat=0.5)
    with psycopg.connect(database.dsn) as holder:
        holder.execute("LOCK TABLE job_runs IN EXCLUSIVE MODE")
        database.put("noop")

        eventually(lambda: any("finish has" in fault for fault in failures(database)), timeout=PATIENCE, interval=0.1)

    eventually(lambda: not failures(database) and not database.all("SELECT id FROM jobs"), timeout=PATIENCE)


@pytest.mark.slow
async def test_a_suspended_worker_shows_that_its_beats_have_stopped(database: QueueDatabase, workers: Workers) -> None:
    worker = workers.start("--no-maintenance", stale_limit=STALE_LIMIT, heartbeat=0.5)
    suspend(worker.keeper_pid)

    faults = eventually(lambda: failures(database), timeout=PATIENCE, interval=0.1)

    assert ["heartbeat" in fault for fault in faults] == [True]


async def test_the_maintenance_tells_of_its_loops_where_no_worker_does(database: QueueDatabase) -> None:
    settings = load_settings(dsn=database.dsn, heartbeat=0.2, stale_limit=1.0, reaper_interval=0.1, poll=0.1)
    maintenance, stop = Maintenance(settings), asyncio.Event()
    running = asyncio.create_task(maintenance.run(stop))
    try:
        await eventually_async(lambda: "reaper" in _duty(database), timeout=PATIENCE)
        with psycopg.connect(database.dsn) as holder:
            # In a thread: the reaper may be in the middle of a transaction on them, and goes on in this very loop.
            await asyncio.to_thread(holder.execute, "LOCK TABLE workers IN EXCLUSIVE MODE")
            await eventually_async(lambda: _is_behind(database), timeout=PATIENCE, interval=0.1)
    finally:
        stop.set()
        await asyncio.wait([running], timeout=PATIENCE)

    assert _duty(database) == {}, "who leaves in peace leaves no loops behind"
    assert [finding.verdict for finding in findings(database)] == [Verdict.OK]


def _is_behind(database: QueueDatabase) -> bool:
    """The reaper hangs and has the connection: the lease cannot be renewed, and nobody else is there to take it."""
    database.run("UPDATE leases SET expires_at = now() + interval '1 hour'")
    return any(fault.startswith("maintenance: reaper has not turned") for fault in failures(database))


def test_a_leader_that_vanished_without_a_successor_is_a_failed_check_while_workers_live(
    database: QueueDatabase,
) -> None:
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state) VALUES ('w', 'h', '{default}', 1, 'running')"
    )
    database.run(
        "INSERT INTO leases (name, holder, expires_at, renewed_at, loops) "
        "VALUES ('maintenance', 'gone', now() - interval '9 s', now() - interval '10 s', '{}')"
    )

    (finding,) = findings(database, "maintenance")

    assert finding.verdict is Verdict.FAIL
    assert "nobody has done it" in finding.detail


async def _told(database: QueueDatabase) -> WorkerView | None:
    worker = await the_worker(database)
    return worker if {loop.name for loop in worker.loops} >= RUNNER_LOOPS else None


async def _loops_in_metrics(database: QueueDatabase) -> dict[str, LoopFigures]:
    reader = MetricsReader(Queries(SCHEMA), stale_limit=timedelta(seconds=STALE_LIMIT))
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as conn:
        return dict((await reader.read(conn)).loops)


def _duty(database: QueueDatabase) -> dict[str, object]:
    rows = database.all("SELECT loops FROM leases WHERE name = 'maintenance'")
    return (rows[0]["loops"] or {}) if rows else {}
