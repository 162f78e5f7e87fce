"""The pytest plugin `pgq`: a migrated schema per session, an empty queue per test.

Loaded by every pytest run of an environment that has the package, so nothing else is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pgq_core.handlers import Registry, Resources
    from pgq_core.testing import AsyncQueueUnderTest, QueueUnderTest


def _fixture_of_coroutines() -> Any:  # noqa: ANN401 - the decorator of one plugin or another
    """pytest-asyncio has a decorator of its own; whatever else runs asynchronous tests (anyio) takes the plain one."""
    try:
        from pytest_asyncio import fixture
    except ImportError:
        return pytest.fixture
    return fixture


@pytest.fixture(scope="session")
def pgq_dsn() -> Iterator[str]:
    """The address of the server: `PGQ_TEST_DSN`, else an embedded one. Override it to use a database of your own."""
    from pgq_core.testing.schemas import server_for_tests

    with server_for_tests() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def pgq_schema(pgq_dsn: str) -> Iterator[str]:
    """A schema for this test session alone (each process of pytest-xdist has one), dropped at its end."""
    from pgq_core.testing.schemas import session_schema

    with session_schema(pgq_dsn) as schema:
        yield schema


@pytest.fixture
def pgq_registry() -> Registry:
    """Whose handlers run. Override it where an application does not use the bare decorators."""
    from pgq_core.handlers import default_registry

    return default_registry


@pytest.fixture
def pgq_resources() -> Resources | None:
    """What handlers find as `context.resources`. Override it with fakes; None runs the startup hooks."""
    return None


@pytest.fixture
def pgq_queue(
    pgq_dsn: str, pgq_schema: str, pgq_registry: Registry, pgq_resources: dict[str, Any] | None
) -> Iterator[QueueUnderTest]:
    """A queue that is empty at the beginning of each test."""
    from pgq_core.testing import QueueUnderTest

    with QueueUnderTest(pgq_dsn, schema=pgq_schema, registry=pgq_registry, resources=pgq_resources) as queue:
        queue.empty()
        yield queue


@_fixture_of_coroutines()  # type: ignore[untyped-decorator]  # see there
async def pgq_async_queue(
    pgq_dsn: str, pgq_schema: str, pgq_registry: Registry, pgq_resources: dict[str, Any] | None
) -> AsyncIterator[AsyncQueueUnderTest]:
    """The same for asynchronous tests, in the test's own loop."""
    from pgq_core.testing import AsyncQueueUnderTest

    async with AsyncQueueUnderTest(pgq_dsn, schema=pgq_schema, registry=pgq_registry, resources=pgq_resources) as queue:
        queue.empty()
        yield queue
