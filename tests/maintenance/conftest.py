"""Maintenance whose turns the tests call themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from pgq_core.maintenance import Maintenance
from pgq_core.settings import load_settings
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async


@pytest.fixture(scope="module")
def module_database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        database = QueueDatabase(address)
        yield database
        database.close()


@pytest.fixture
def database(module_database: QueueDatabase) -> Iterator[QueueDatabase]:
    yield module_database
    module_database.empty()


@pytest.fixture
async def maintenance(database: QueueDatabase) -> AsyncIterator[Maintenance]:
    settings = load_settings(
        dsn=database.dsn, heartbeat=1, stale_limit=3, reaper_interval=0.1, poll=0.1, runs_kept=7 * 86400
    )
    # A server that has just started is given time: nobody is taken for silent before the stale limit.
    await eventually_async(lambda: database.value("SELECT pg_postmaster_start_time() < now() - interval '3 s'"))
    maintenance = Maintenance(settings)
    yield maintenance
    await maintenance.close()
