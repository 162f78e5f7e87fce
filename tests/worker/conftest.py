"""A database to look into, and workers: real processes, or a corridor inside the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.queue_database import QueueDatabase
from tests.support.worker_process import Workers, workers_on


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = QueueDatabase(dsn)
    database.run(
        "CREATE TABLE public.ledger (id bigserial, job_id bigint, attempt int, pid int, event text, at timestamptz DEFAULT clock_timestamp())"
    )
    database.run("CREATE TABLE public.effects (job_id bigint)")
    yield database
    database.close()


@pytest.fixture
def workers(database: QueueDatabase, tmp_path: Path) -> Iterator[Workers]:
    with workers_on(database, tmp_path) as started:
        yield started
