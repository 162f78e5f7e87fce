"""One server and one database for all of these tests; each of them finds the tables empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.api.server import ApiProcess, api_on
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase

TABLES = (
    "jobs",
    "dead_letter_jobs",
    "job_keys",
    "job_runs",
    "job_stats",
    "job_types",
    "workers",
    "queues",
    "operations",
    "api_tokens",
    "selections",
)


@pytest.fixture(scope="session")
def api_dsn(server_dsn: str, template_database: str) -> Iterator[str]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        yield address


@pytest.fixture(scope="session")
def api(api_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_on(api_dsn, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="session")
def client(api: ApiProcess) -> Iterator[httpx.Client]:
    with httpx.Client(verify=False, base_url=api.url, timeout=60) as opened:
        yield opened


@pytest.fixture
def database(api_dsn: str) -> Iterator[QueueDatabase]:
    opened = QueueDatabase(api_dsn)
    yield opened
    empty(opened)
    opened.close()


def empty(database: QueueDatabase) -> None:
    """A few rows are deleted several times faster than tables and their partitions are truncated."""
    with psycopg.connect(database.dsn) as conn:
        for table in TABLES:
            conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path
