"""Metrics that tell of a fault before somebody has to look for it."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core import JobQueue
from pgq_core.maintenance import Maintenance
from pgq_core.metrics.service import MetricsService
from pgq_core.settings import load_settings
from tests.catalogue.rows import add_running, add_worker
from tests.metrics.samples import samples, value
from tests.support.queue_database import QueueDatabase


async def figures(database: QueueDatabase, *names: str) -> tuple[float, ...]:
    service = MetricsService(load_settings(dsn=database.dsn, heartbeat=1, stale_limit=3))
    try:
        await service.run_once()
        found = samples(service.exposition())
    finally:
        await service.stopped()
    return tuple(value(found, name) for name in names)


async def test_jobs_without_an_owner_and_the_age_of_the_oldest_running_one_are_metrics(
    database: QueueDatabase, queue: JobQueue, maintenance: Maintenance, conn: AsyncConnection[Any]
) -> None:
    assert await figures(database, "jobs_without_owner", "job_oldest_running_age_seconds") == (0, 0)
    add_worker(database, "alive")
    add_worker(database, "silent", beat_ago=10)
    add_worker(database, "ended", stopped=True)
    for worker in ("alive", "silent", "ended", "unknown"):
        add_running(database, worker, claimed_ago=100)
    database.put("job")
    queue.claim("default", 1, lease=60)

    without_owner, age = await figures(database, "jobs_without_owner", "job_oldest_running_age_seconds")

    assert without_owner == 3
    assert age == pytest.approx(100, abs=30)
    await maintenance.reaper.run_once()
    assert await figures(database, "jobs_without_owner") == (0,)
