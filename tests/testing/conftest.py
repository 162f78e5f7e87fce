"""A queue under test on one database for all of these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from pgq_core import Registry
from pgq_core.testing import AsyncQueueUnderTest, QueueUnderTest
from tests.conftest import SCHEMA
from tests.support.databases import new_database


@pytest.fixture(scope="module")
def module_dsn(server_dsn: str, template_database: str) -> Iterator[str]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as dsn:
        yield dsn


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def queue(module_dsn: str, registry: Registry) -> Iterator[QueueUnderTest]:
    with QueueUnderTest(module_dsn, schema=SCHEMA, registry=registry) as queue:
        queue.empty()
        yield queue


@pytest.fixture
async def async_queue(module_dsn: str, registry: Registry) -> AsyncIterator[AsyncQueueUnderTest]:
    async with AsyncQueueUnderTest(module_dsn, schema=SCHEMA, registry=registry) as queue:
        queue.empty()
        yield queue
