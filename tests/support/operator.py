"""An operator at a connection: fixtures for tests of the read side and of the verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.inspector import Inspector
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from tests.conftest import SCHEMA

OPERATOR = "ops@test"


@pytest.fixture
def queries() -> Queries:
    return Queries(SCHEMA)


@pytest.fixture
def operations(queries: Queries) -> Operations:
    return Operations(queries, operator=OPERATOR)


@pytest.fixture
def inspector(queries: Queries) -> Inspector:
    return Inspector(queries)


@pytest.fixture
async def conn(dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    connection = await connect(dsn, application_name="test operator")
    yield connection
    await connection.close()
