"""Clocks that are set, zones that differ, transactions that began long ago."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from pgq_core import JobQueue
from pgq_core.handlers import Registry
from pgq_core.maintenance import Maintenance
from pgq_core.maintenance.stepped_clock import ClockWatch
from pgq_core.migrate import migrate
from pgq_core.queries import Queries
from tests.catalogue.rows import add_running, add_worker
from tests.catalogue.skew import Skew
from tests.conftest import SCHEMA
from tests.support.corridors import running_corridor
from tests.support.databases import new_database, ready_server
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import Workers, workers_on
from tests.worker.conftest import open_database

HOUR = 3600


def watch() -> tuple[ClockWatch, list[float]]:
    now = [100.0]
    return ClockWatch(Queries(SCHEMA), tolerance=5, patience=30, monotonic=lambda: now[0]), now


def test_clock_that_goes_as_ours_is_trusted_however_slow_its_answers_are() -> None:
    clock, now = watch()

    for epoch, before, after in [(1000, 0, 0), (1010, 10, 10), (1030, 10, 31), (1031, 31, 90), (1090, 90, 90.1)]:
        now[0] = after
        clock.compare(epoch, before=before, after=after)
        assert clock.is_trusted


@pytest.mark.parametrize("step", [HOUR, 30, 6])
def test_clock_that_was_set_ahead_is_not_trusted_until_everybody_could_beat(step: float) -> None:
    clock, now = watch()
    clock.compare(1000, before=100, after=100)

    clock.compare(1001 + step, before=101, after=101)

    now[0] = 130.9
    assert not clock.is_trusted
    now[0] = 131.0
    assert clock.is_trusted


async def test_workers_that_only_look_silent_because_the_clock_was_set_ahead_are_left_alone(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    add_worker(database, "healthy")
    held = add_running(database, "healthy")
    await maintenance.reaper.run_once()
    # An hour passed on the server since the last look, and none here: the last look was an hour earlier than it says.
    watched = maintenance._leadership.clock
    assert watched._last is not None
    epoch, before, after = watched._last
    watched._last = epoch - HOUR, before, after
    database.run("UPDATE workers SET heartbeat_at = heartbeat_at - interval '1 hour'")

    await maintenance.reaper.run_once()

    assert (database.job(held) or {})["status"] == "running"
    assert database.value("SELECT state FROM workers") == "running"


async def test_worker_that_died_before_the_clock_was_set_back_is_found_out(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    add_worker(database, "dead", beat_ago=-HOUR)
    held = add_running(database, "dead", claimed_ago=-HOUR)

    await maintenance.reaper.run_once()
    assert database.value("SELECT heartbeat_at <= now() FROM workers")  # from now on its silence counts
    database.run("UPDATE workers SET heartbeat_at = heartbeat_at - interval '4 s'")
    await maintenance.reaper.run_once()

    assert database.outcomes(held) == ["lost"]


async def test_job_of_nobody_that_was_claimed_before_the_clock_was_set_back_is_found(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    held = add_running(database, "nobody", claimed_ago=-HOUR)

    await maintenance.reaper.run_once()

    assert database.outcomes(held) == ["lost"]


async def test_duty_of_a_leader_that_died_before_the_clock_was_set_back_is_taken_over(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    database.run("INSERT INTO leases (name, holder, expires_at) VALUES ('maintenance', 'dead', now() + interval '1 h')")

    await maintenance.reaper.run_once()

    assert maintenance.is_leader


async def test_host_of_a_supervisor_that_died_before_the_clock_was_set_back_is_taken_over(
    database: QueueDatabase, queries: Queries, conn: AsyncConnection[Any]
) -> None:
    database.run("DELETE FROM supervisors")
    database.run(
        "INSERT INTO supervisors (host, supervisor_id, pid, pools, version, heartbeat_at) "
        "VALUES ('host', 'dead', 1, '{}', '0', now() + interval '1 hour')"
    )

    taken = queries.take_host_lease(
        host="host", supervisor_id="new", pid=2, pools=[], version="0", stale_limit=timedelta(seconds=30), dead_id=None
    )

    assert await taken.fetch_all(conn) == ["new"]
    database.run("DELETE FROM supervisors")


async def test_zones_of_host_server_and_client_move_no_due_time(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET TimeZone = 'America/Los_Angeles'")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("PGTZ", "UTC")
    time.tzset()
    try:
        with JobQueue(database.dsn, registry=registry, timeout=20) as queue:
            soon = queue.enqueue("job", delay=0.3)
            late = queue.enqueue("job", delay=timedelta(hours=1))
        async with running_corridor(database.dsn, registry):
            await eventually_async(lambda: database.outcomes(soon.id) == ["succeeded"])
    finally:
        monkeypatch.undo()
        time.tzset()
        database.run(f"ALTER DATABASE {name} RESET TimeZone")

    (run,) = database.runs(soon.id)
    assert run["due_at"] <= run["started_at"]
    assert timedelta(seconds=0.3) <= run["due_at"] - run["enqueued_at"] < timedelta(seconds=10)
    assert (database.job(late.id) or {})["status"] == "scheduled"


async def test_delay_counts_from_the_enqueue_and_not_from_the_beginning_of_its_transaction(
    database: QueueDatabase, queue: JobQueue
) -> None:
    with psycopg.connect(database.dsn) as conn:
        conn.execute("SELECT 1")
        await asyncio.sleep(1.0)
        before = time.time()
        job = queue.enqueue("job", delay=60, conn=conn)

    due = database.value("SELECT extract(epoch FROM not_before)::float8 FROM jobs WHERE id = %s", job.id)
    assert due >= before + 60 - 0.5


@pytest.fixture
def skew(tmp_path_factory: pytest.TempPathFactory) -> Skew:
    directory = tmp_path_factory.mktemp("skew")
    for place in (directory, *directory.parents[:-2]):
        place.chmod(place.stat().st_mode | 0o011)
    return Skew(directory)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [90, -90])
def test_clock_of_a_workers_host_decides_nothing(
    database: QueueDatabase, workers: Workers, skew: Skew, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    skew.set(seconds)
    for name, value in skew.environment.items():
        monkeypatch.setenv(name, value)
    wrong = workers.start("--no-maintenance", stale_limit=5)
    for name in skew.environment:
        monkeypatch.delenv(name)
    job_id = database.put("ledger", {"seconds": 1.6})
    eventually(lambda: database.all("SELECT FROM ledger WHERE event = 'start'"))
    workers.start(stale_limit=5)  # its reaper lives by the true time

    skew.set(seconds + HOUR if seconds > 0 else seconds - HOUR)
    eventually(lambda: database.job(job_id) is None, timeout=30)

    assert database.outcomes(job_id) == ["succeeded"]
    (run,) = database.runs(job_id)
    assert abs(run["finished_at"].timestamp() - time.time()) < 60
    vanished = database.put("ledger", {"seconds": 60}, max_attempts=1)
    eventually(lambda: database.all("SELECT FROM ledger WHERE job_id = %s", vanished))
    if database.value("SELECT pid FROM ledger WHERE job_id = %s", vanished) == wrong.runner_pid:
        wrong.kill_all()
        eventually(lambda: database.outcomes(vanished) == ["lost"], timeout=10)


@pytest.fixture
def stepped_database(home: Path, skew: Skew) -> Iterator[QueueDatabase]:
    """On a server whose clock a test sets."""
    server = ready_server("skew", home)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in skew.environment.items():
            patch.setenv(name, value)
        address = server.start()
    try:
        with new_database(address, search_path=SCHEMA) as dsn:
            migrate(dsn, schema=SCHEMA)
            database = open_database(dsn)
            yield database
            database.close()
    finally:
        server.stop()


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_servers_clock_is_set_under_working_workers_and_no_job_runs_twice(
    stepped_database: QueueDatabase, skew: Skew, tmp_path: Path, step: int
) -> None:
    database = stepped_database
    settings = {"heartbeat": 0.5, "stale_limit": 3, "reaper_interval": 0.1}
    with workers_on(database, tmp_path) as workers:
        for _ in range(2):
            workers.start(**settings)
        jobs = [database.put("ledger", {"seconds": 4}) for _ in range(6)]
        eventually(lambda: database.value("SELECT count(*) FROM ledger WHERE event = 'start'") == 6, timeout=30)
        true = time.time()
        assert abs(database.value("SELECT extract(epoch FROM clock_timestamp())::float8") - true) < 60

        skew.set(step)

        assert abs(database.value("SELECT extract(epoch FROM clock_timestamp())::float8") - true - step) < 60
        eventually(lambda: database.all("SELECT FROM jobs") == [], timeout=60)
        later = database.put("noop")
        eventually(lambda: database.outcomes(later) == ["succeeded"], timeout=30)
        # Whoever vanishes now is found out within the stale limit, not within the hour.
        lost = database.put("ledger", {"seconds": 60})
        eventually(lambda: database.all("SELECT FROM ledger WHERE job_id = %s", lost), timeout=30)
        pid = database.value("SELECT pid FROM ledger WHERE job_id = %s", lost)
        for worker in workers._started:
            if worker.runner_pid == pid:
                worker.kill_all()
        eventually(lambda: database.outcomes(lost) == ["lost"], timeout=30)

    assert {tuple(database.outcomes(job_id)) for job_id in jobs} == {("succeeded",)}
    assert database.value("SELECT count(*) FROM ledger WHERE event = 'start' AND job_id = ANY(%s)", jobs) == 6
    assert database.all("SELECT FROM workers WHERE exit_reason LIKE 'fenced%%'") == []
    assert database.all(FAULTS) == []
    assert os.getenv("LD_PRELOAD") is None
