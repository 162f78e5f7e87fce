"""One process does the work; another takes over when it is gone, and two at once do no harm."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgq_core.maintenance import Maintenance
from pgq_core.settings import load_settings
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import FAST, ROOT


def maintenance_on(database: QueueDatabase, **settings: object) -> Maintenance:
    fast = {"heartbeat": 0.1, "stale_limit": 0.5, "reaper_interval": 0.05, "poll": 0.05}
    return Maintenance(load_settings(dsn=database.dsn, **{**fast, **settings}))


async def test_one_leads_and_the_next_takes_over_at_once_when_it_leaves(database: QueueDatabase) -> None:
    # Its lease does not end because the machine is busy.
    first, second = maintenance_on(database, stale_limit=60.0), maintenance_on(database, stale_limit=60.0)
    stop_first, stop_second = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(first.run(stop_first)), asyncio.create_task(second.run(stop_second))]

    await eventually_async(lambda: first.is_leader or second.is_leader)
    await asyncio.sleep(0.3)
    assert first.is_leader is not second.is_leader
    leader, stop = (first, stop_first) if first.is_leader else (second, stop_second)
    follower = second if leader is first else first
    stop.set()

    await eventually_async(lambda: follower.is_leader)
    for event in (stop_first, stop_second):
        event.set()
    await asyncio.gather(*tasks)


async def test_follower_takes_over_when_the_lease_of_a_dead_leader_ends(database: QueueDatabase) -> None:
    dead = maintenance_on(database, stale_limit=6.0)  # long enough for a busy machine to look while it holds
    await dead.reaper.run_once()
    assert dead.is_leader
    await dead._leadership._close()  # its process is gone, its lease is not
    follower = maintenance_on(database, stale_limit=6.0)
    await follower.reaper.run_once()
    assert not follower.is_leader

    async with asyncio.timeout(60):
        while not follower.is_leader:
            await follower.reaper.run_once()
            await asyncio.sleep(0.02)

    await follower.close()


async def test_work_goes_on_while_a_stranger_has_locked_the_lease(
    database: QueueDatabase, stranger: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only whoever has the row leads; where nobody can have it, work that is done twice harms less than none."""
    monkeypatch.setattr("pgq_core.maintenance.leadership.LOCK_LIMIT", 0.1)
    leader, follower = maintenance_on(database, stale_limit=60.0), maintenance_on(database, stale_limit=60.0)
    await leader.promoter.run_once()
    due = database.put("noop", not_before="2999-01-01")
    stranger.execute("SELECT FROM leases FOR UPDATE")
    database.run("UPDATE jobs SET not_before = now() WHERE id = %s", due)
    database.run("UPDATE jobs SET status = 'scheduled' WHERE id = %s", due)
    await leader.close()

    await follower.promoter.run_once()

    assert database.value("SELECT status FROM jobs WHERE id = %s", due) == "pending"
    stranger.rollback()
    await follower.close()


async def test_follower_holds_no_connection(database: QueueDatabase) -> None:
    leader, follower = maintenance_on(database, stale_limit=60.0), maintenance_on(database, stale_limit=60.0)
    await leader.reaper.run_once()
    await follower.reaper.run_once()

    def sessions() -> int:
        return int(
            database.value(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE application_name = 'pgq maintenance' AND datname = current_database()"
            )
        )

    await eventually_async(lambda: sessions() == 1)  # a backend needs a moment to leave
    await leader.close()


async def test_two_reapers_at_once_rescue_each_job_once(database: QueueDatabase) -> None:
    database.run('INSERT INTO jobs (payload) SELECT \'{"type": "t"}\' FROM generate_series(1, 300)')
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'gone', locked_at = now() - interval '1 min', claim_token = 1"
    )
    # A server that has just started is given time for as long as the stale limit.
    await eventually_async(lambda: database.value("SELECT pg_postmaster_start_time() < now() - interval '0.5 s'"))
    reapers = [maintenance_on(database) for _ in range(4)]
    for maintenance in reapers:  # a lease says nothing about correctness: let all of them think that they lead
        maintenance._leadership.is_leader = True
        maintenance._leadership._ask_at = float("inf")

    await asyncio.gather(*(maintenance.reaper.run_once() for maintenance in reapers))
    await reapers[0].reaper.run_once()

    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'lost'") == 300
    assert database.value("SELECT count(*) FROM jobs WHERE status = 'pending' AND losses = 1") == 300
    for maintenance in reapers:
        await maintenance.close()


async def test_health_tells_the_age_of_the_last_good_turn(database: QueueDatabase) -> None:
    maintenance = maintenance_on(database)
    assert maintenance.health()["reaper"].last_good_age is None
    stop = asyncio.Event()
    task = asyncio.create_task(maintenance.run(stop))

    await eventually_async(lambda: all(h.last_good_age is not None for h in maintenance.health().values()))

    assert all(health.failures == 0 for health in maintenance.health().values())
    stop.set()
    await task


@pytest.mark.system
def test_maintain_is_a_process_of_its_own(database: QueueDatabase, tmp_path: Path) -> None:
    job_id = database.put("t")
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'gone', locked_at = now() - interval '1 min', claim_token = 1"
    )
    log = tmp_path / "maintain.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.worker.program", "--maintain"],
            cwd=ROOT,
            env={**os.environ, **FAST, "DATABASE_URL": database.dsn, "PGQ_STALE_LIMIT": "2"},
            stdout=output,
            stderr=output,
        )
    try:
        eventually(lambda: database.outcomes(job_id) == ["lost"], timeout=30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
