"""A queue of either kind on the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from pgq_core import AsyncJobQueue, JobQueue, Registry


@pytest.fixture
def registry() -> Registry:
    """The handlers that the queues of a test know."""
    return Registry()


@pytest.fixture
def queue(dsn: str, registry: Registry) -> Iterator[JobQueue]:
    with JobQueue(dsn, registry=registry, timeout=20) as queue:
        yield queue


@pytest.fixture
async def async_queue(dsn: str, registry: Registry) -> AsyncIterator[AsyncJobQueue]:
    async with AsyncJobQueue(dsn, registry=registry, timeout=20) as queue:
        yield queue


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[DictRow]]:
    """Somebody else's session, in autocommit."""
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        yield connection
