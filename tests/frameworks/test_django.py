"""Django's own connection: `transaction.atomic` holds row and job together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connections
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict

from pgq_core import JobQueue
from tests.frameworks.conftest import stored
from tests.support.queue_database import QueueDatabase

INSERT = "INSERT INTO public.customers (email) VALUES ('a@example.org')"


def options_of(dsn: str) -> dict[str, Any]:
    given = conninfo_to_dict(dsn)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.get("dbname"),
        "USER": given.get("user", ""),
        "PASSWORD": given.get("password", ""),
        "HOST": given.get("host", ""),
        "PORT": str(given.get("port", "")),
    }


@pytest.fixture
def connection(database: QueueDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if not settings.configured:
        settings.configure(LOGGING_CONFIG=None)
        django.setup()
    handler = ConnectionHandler({"default": options_of(database.dsn)})
    monkeypatch.setattr(connections, "_settings", handler._settings)
    monkeypatch.setattr(connections, "settings", handler.settings, raising=False)
    from django.db import connection

    yield connection
    connection.close()
    del connections["default"]


def test_atomic_commits_and_rolls_back_row_and_job_together(
    connection: Any, queue: JobQueue, database: QueueDatabase
) -> None:
    from django.db import transaction

    with transaction.atomic():
        queue.enqueue("welcome", {"to": "a"}, idempotency_key="once", conn=connection)
        connection.cursor().execute(INSERT)
        assert stored(database) == (0, 0)
    assert stored(database) == (1, 1)

    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        connection.cursor().execute(INSERT)
        queue.enqueue("welcome", conn=connection)
        raise ZeroDivisionError
    assert stored(database) == (1, 1)


def test_a_savepoint_takes_its_job_back(connection: Any, queue: JobQueue, database: QueueDatabase) -> None:
    from django.db import transaction

    with transaction.atomic():
        queue.enqueue_many([("welcome", {"n": 1}), ("welcome", {"n": 2})], conn=connection)
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            queue.enqueue("welcome", conn=connection)
            raise ZeroDivisionError

    assert stored(database) == (0, 2)


def test_outside_of_atomic_the_job_is_there_at_once(connection: Any, queue: JobQueue, database: QueueDatabase) -> None:
    queue.enqueue("welcome", conn=connection)

    assert stored(database) == (0, 1)
