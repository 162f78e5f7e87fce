"""Heartbeats, reaper and recovery: who is dead is found out in time, and nobody else is taken for it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from pgq_core.errors import InvalidSettings
from pgq_core.handlers import Registry
from pgq_core.maintenance import Maintenance
from pgq_core.settings import load_settings
from tests.catalogue.rows import add_running, add_worker
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import Workers


@pytest.mark.slow
@pytest.mark.system
def test_worker_beats_until_the_job_it_drains_is_written(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("ledger", {"seconds": 6.5})  # three times the stale limit
    first = workers.start("--no-maintenance", stale_limit=2.0, grace=30.0)
    eventually(lambda: database.all("SELECT FROM ledger WHERE event = 'start'"))
    workers.start(stale_limit=2.0)  # idle, and its reaper looks every 0.1 s

    first.process.send_signal(signal.SIGTERM)

    eventually(lambda: database.job(job_id) is None, timeout=30)
    assert database.outcomes(job_id) == ["succeeded"]
    assert database.value("SELECT count(*) FROM ledger WHERE event = 'start'") == 1
    assert first.process.wait(60) == 0


async def test_job_that_waits_for_a_lock_it_holds_itself_is_ended_by_its_time_limit(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("deadlock")
    async def deadlock(data: Any) -> None:
        lock = asyncio.Lock()
        async with lock, lock:
            pass

    job_id = database.put("deadlock", timeout="200 ms", max_attempts=1)

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id))

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("timeout", 1)
    assert "time limit" in letter["last_error"]


UNFIT = [
    {"heartbeat": 10, "stale_limit": 8},
    {"heartbeat": 10, "stale_limit": 29},
    {"heartbeat": 0, "stale_limit": 30},
    {"heartbeat": -1, "stale_limit": 30},
    {"heartbeat": 5, "stale_limit": 0},
]


@pytest.mark.parametrize("values", UNFIT)
@pytest.mark.parametrize("source", ["flag", "environment", "file"])
def test_periods_that_do_not_fit_are_refused_from_every_source(
    values: dict[str, float], source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags: dict[str, float] = {}
    match source:
        case "flag":
            flags = values
        case "environment":
            for name, value in values.items():
                monkeypatch.setenv(f"PGQ_{name.upper()}", str(value))
        case _:
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
            (tmp_path / "pgq-tui").mkdir()
            lines = [f"{name} = {value}" for name, value in values.items()]
            (tmp_path / "pgq-tui" / "config.toml").write_text("\n".join(lines))

    with pytest.raises(InvalidSettings) as refused:
        load_settings(**flags)

    assert "heartbeat" in str(refused.value) or "stale_limit" in str(refused.value)
    if min(values.values()) > 0:
        assert "stale_limit" in str(refused.value)
        assert "at least three times heartbeat" in str(refused.value)


@pytest.mark.parametrize(("heartbeat", "stale_limit"), [(0.05, 0.15), (0.1, 0.3), (5, 15), (0.7, 2.1)])
def test_exactly_three_beats_fit(heartbeat: float, stale_limit: float) -> None:
    settings = load_settings(heartbeat=heartbeat, stale_limit=stale_limit)

    assert (settings.heartbeat, settings.stale_limit) == (heartbeat, stale_limit)


async def test_all_jobs_of_a_host_that_vanished_run_again_on_the_next_one(
    database: QueueDatabase, registry: Registry, maintenance: Maintenance
) -> None:
    ran: list[int] = []

    @registry.handler("job")
    async def job(data: int) -> None:
        ran.append(data)

    for worker in ("gone-1", "gone-2"):
        add_worker(database, worker, beat_ago=5)
    jobs = [add_running(database, f"gone-{n % 2 + 1}", claimed_ago=8) for n in range(20)]
    database.run("UPDATE jobs SET payload = jsonb_set(payload, '{data}', to_jsonb(id))")

    async with running_corridor(database.dsn, registry):
        await maintenance.reaper.run_once()
        await eventually_async(lambda: len(ran) == 20)
        await eventually_async(lambda: database.all("SELECT FROM jobs") == [])

    assert sorted(ran) == jobs
    assert {tuple(database.outcomes(job_id)) for job_id in jobs} == {("lost", "succeeded")}
    assert database.all(FAULTS) == []


async def test_retention_never_touches_what_is_old_and_still_alive(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    add_worker(database, "busy")
    running = add_running(database, "busy", claimed_ago=2)
    pending = database.put("job")
    scheduled = database.put("job", not_before="2100-01-01")
    letter = database.put("job")
    database.run(
        "WITH job AS (DELETE FROM jobs WHERE id = %s RETURNING *) INSERT INTO dead_letter_jobs "
        "(original_job_id, queue, payload, last_error, attempts, max_attempts, reason, created_at, died_at, "
        "origin_job_id) SELECT id, queue, payload, 'broken', 1, 1, 'exhausted', created_at, "
        "now() - interval '2 years', id FROM job",
        letter,
    )
    database.run("UPDATE jobs SET created_at = now() - interval '2 years'")
    settings = load_settings(dsn=database.dsn, runs_kept=86400, resolved_dead_letters_kept=86400)
    one_day = Maintenance(settings)
    try:
        await one_day.retention.run_once()
        await one_day.expired_partitions.run_once()
    finally:
        await one_day.close()

    assert {row["id"] for row in database.all("SELECT id FROM jobs")} == {running, pending, scheduled}
    assert database.letter(letter) is not None
