"""One server and one database for all of these tests; each of them finds the tables empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.server import ApiProcess, api_on
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase


@pytest.fixture(scope="session")
def api_dsn(server_dsn: str, template_database: str) -> Iterator[str]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        yield address


@pytest.fixture(scope="session")
def api(api_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_on(api_dsn, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def client(api: ApiProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, timeout=20) as opened:
        yield opened


@pytest.fixture
def database(api_dsn: str) -> Iterator[QueueDatabase]:
    opened = QueueDatabase(api_dsn)
    yield opened
    empty(opened)
    opened.close()


def empty(database: QueueDatabase) -> None:
    database.empty()
    database.run("TRUNCATE api_tokens, selections RESTART IDENTITY")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path
