"""A claim may not pay for what has ended: dead entries of its index that a held snapshot keeps from being vacuumed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection, IsolationLevel

from pgq_core.domain.job import JSON
from pgq_core.handlers import Registry
from tests.bench.counting import CountingDatabase
from tests.support.corridors import running_corridor
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.torture

JOBS = 20_000
DEAD = 1_000_000


@contextlib.contextmanager
def held_snapshot(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, application_name="holder") as conn:
        conn.isolation_level = IsolationLevel.REPEATABLE_READ
        conn.execute("SELECT 1")
        yield conn


async def test_blocks_that_a_claim_reads_do_not_grow_with_dead_entries(counted: CountingDatabase) -> None:
    registry = Registry()

    @registry.handler("noop")
    async def noop(data: JSON) -> None: ...

    with held_snapshot(counted.dsn):
        async with running_corridor(counted.dsn, registry, concurrency=10, poll=0.5) as running:

            async def blocks_per_job(jobs: int) -> float:
                counted.reset()
                target = running.marks.finished + jobs
                await asyncio.to_thread(counted.fill, jobs)
                await eventually_async(lambda: running.marks.finished == target, timeout=900)
                claims = counted.statements()["claim_jobs"]
                return claims.blocks / claims.rows

            first = await blocks_per_job(JOBS)
            await blocks_per_job(DEAD)
            last = await blocks_per_job(JOBS)

    assert last <= 2 * first, (first, last)
