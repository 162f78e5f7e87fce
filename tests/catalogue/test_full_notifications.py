"""The server's queue of notifications is full, by the doing of others: they were only hints."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgq_core import JobQueue
from pgq_core.domain.job import JSON
from pgq_core.handlers import Registry
from pgq_core.migrate import migrate
from tests.conftest import SCHEMA
from tests.support.corridors import running_corridor
from tests.support.databases import FAST, new_database, ready_server
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

USAGE = "SELECT pg_notification_queue_usage()"


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    with ready_server("notifications", home, {**FAST, "max_notify_queue_pages": "64"}).lease() as dsn:
        yield dsn


@pytest.fixture
def database(server: str) -> Iterator[QueueDatabase]:
    with new_database(server, search_path=SCHEMA) as dsn:
        migrate(dsn, SCHEMA)
        database = QueueDatabase(dsn)
        yield database
        database.close()


@pytest.fixture
def full(server: str) -> Iterator[None]:
    """Somebody listens in another database and stays in a transaction, while others notify."""
    with psycopg.connect(server, autocommit=True) as idle, psycopg.connect(server, autocommit=True) as other:
        idle.execute("LISTEN anything")
        idle.execute("BEGIN")
        idle.execute("SELECT 1")
        for length in (7000, 1):
            fill(other, length)
        yield


def fill(conn: psycopg.Connection[Any], length: int) -> None:
    with contextlib.suppress(psycopg.errors.ProgramLimitExceeded):
        while True:
            conn.execute("SELECT pg_notify('anything', gen_random_uuid() || repeat('x', %s))", (length,))


@pytest.mark.usefixtures("full")
async def test_jobs_are_taken_in_promoted_cancelled_and_run_all_the_same(database: QueueDatabase) -> None:
    registry, ran, began = Registry(), [], asyncio.Event()

    @registry.handler("note")
    async def note(data: JSON) -> None:
        ran.append(data)

    @registry.handler("long")
    async def long(data: JSON) -> None:
        began.set()
        await asyncio.sleep(30)

    async with running_corridor(database.dsn, registry, poll=0.2):
        await eventually_async(lambda: database.value("SELECT count(*) FROM worker_waits WHERE waiting") == 1)
        database.run("INSERT INTO worker_waits (worker_id, waiting) VALUES ('another that sleeps', true)")
        database.put("note", 1)
        database.put("note", 2, not_before=database.value("SELECT now() + interval '300 ms'"))
        database.run("SELECT resume('default')")
        with JobQueue(database.dsn) as queue:
            queue.enqueue("note", 3)
            assert queue.cancel(queue.enqueue("note", 4, delay=3600).id)
            queue.enqueue("elsewhere", queue="by hand")
            running = queue.enqueue("long")
            await asyncio.wait_for(began.wait(), 60)
            assert queue.cancel(running.id)
            (held,) = queue.claim("by hand")
            queue.release(held)
        await eventually_async(lambda: sorted(ran) == [1, 2, 3])
        await eventually_async(lambda: database.job(running.id) is None)
    assert database.value("SELECT outcome FROM job_runs WHERE job_id = %s", running.id) == "cancelled"
    assert database.value(USAGE) > 0.5
