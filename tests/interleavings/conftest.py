"""One database for each module of scripts; every script finds it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase


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
