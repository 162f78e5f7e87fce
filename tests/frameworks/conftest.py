"""Applications that have their own way to the database, all on one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgq_core import JobQueue
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase


@pytest.fixture(scope="module")
def module_database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as dsn:
        database = QueueDatabase(dsn)
        database.run("CREATE TABLE public.customers (id bigserial PRIMARY KEY, email text)")
        yield database
        database.close()


@pytest.fixture
def database(module_database: QueueDatabase) -> Iterator[QueueDatabase]:
    yield module_database
    module_database.run("TRUNCATE public.customers")
    module_database.run("DELETE FROM jobs")
    module_database.run("DELETE FROM job_keys")


@pytest.fixture
def queue(database: QueueDatabase) -> Iterator[JobQueue]:
    with JobQueue(database.dsn) as queue:
        yield queue


def stored(database: QueueDatabase) -> tuple[int, int]:
    """How many customers and how many jobs are committed."""
    customers = database.value("SELECT count(*) FROM public.customers")
    return customers, database.value("SELECT count(*) FROM jobs")
