"""A server of its own that counts statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.counting import CountingDatabase, counting_database, counting_server, migrated_template


@pytest.fixture(scope="session")
def counting_dsn(home: Path) -> Iterator[str]:
    with counting_server(home) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def counting_template(counting_dsn: str) -> Iterator[str]:
    with migrated_template(counting_dsn) as name:
        yield name


@pytest.fixture
def counted(counting_dsn: str, counting_template: str) -> Iterator[CountingDatabase]:
    with counting_database(counting_dsn, counting_template) as database:
        yield database
