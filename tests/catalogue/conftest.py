"""One database for a module of tests; each finds it empty. Workers run inside the test unless it is about processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core import JobQueue, Registry
from pgq_core.database import connect
from pgq_core.maintenance import Maintenance
from pgq_core.queries import Queries
from pgq_core.settings import load_settings
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async
from tests.support.worker_process import Workers, workers_on
from tests.worker.conftest import open_database


@pytest.fixture(scope="module")
def module_database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        database = open_database(address)
        yield database
        database.close()


@pytest.fixture
def database(module_database: QueueDatabase) -> Iterator[QueueDatabase]:
    yield module_database
    module_database.empty()
    module_database.run("TRUNCATE public.ledger, public.effects")


@pytest.fixture
def workers(database: QueueDatabase, tmp_path: Path) -> Iterator[Workers]:
    with workers_on(database, tmp_path) as started:
        yield started


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def queue(database: QueueDatabase) -> Iterator[JobQueue]:
    with JobQueue(database.dsn, registry=Registry(), timeout=20) as queue:
        yield queue


@pytest.fixture
def queries() -> Queries:
    return Queries(SCHEMA)


@pytest.fixture
async def maintenance(database: QueueDatabase) -> AsyncIterator[Maintenance]:
    """Its turns are called by the tests."""
    settings = load_settings(dsn=database.dsn, heartbeat=1, stale_limit=3, reaper_interval=0.1, poll=0.1)
    # A server that has just started is given time: nobody is taken for silent before the stale limit.
    await eventually_async(lambda: database.value("SELECT pg_postmaster_start_time() < now() - interval '3 s'"))
    maintenance = Maintenance(settings)
    yield maintenance
    await maintenance.close()


@pytest.fixture
async def conn(database: QueueDatabase) -> AsyncIterator[AsyncConnection[Any]]:
    connection = await connect(database.dsn, application_name="test")
    yield connection
    await connection.close()
