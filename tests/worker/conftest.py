"""A database to look into, and workers: real processes, or a corridor inside the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase
from tests.support.worker_process import Workers, workers_on


def open_database(dsn: str) -> QueueDatabase:
    database = QueueDatabase(dsn)
    database.run(
        "CREATE TABLE public.ledger (id bigserial, job_id bigint, attempt int, pid int, event text, "
        "at timestamptz DEFAULT clock_timestamp())"
    )
    database.run("CREATE TABLE public.effects (job_id bigint)")
    return database


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = open_database(dsn)
    yield database
    database.close()


@pytest.fixture(scope="module")
def module_database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    """One for a whole module of quick tests; each of them finds it empty by `shared`."""
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        database = open_database(address)
        yield database
        database.close()


@pytest.fixture
def shared(module_database: QueueDatabase) -> Iterator[QueueDatabase]:
    yield module_database
    module_database.empty()
    module_database.run("TRUNCATE public.ledger, public.effects")


@pytest.fixture
def workers(database: QueueDatabase, tmp_path: Path) -> Iterator[Workers]:
    with workers_on(database, tmp_path) as started:
        yield started
