"""docs/handlers.md: its Python blocks run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection
from psycopg.rows import DictRow

import pgq_core
from pgq_core import ClaimLost, JobQueue, Registry
from tests.queue.rows import rows

PAGE = Path(pgq_core.__file__).parents[1] / "docs" / "handlers.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the page's first block, registered apart from the default registry of this process."""
    registry = Registry()
    monkeypatch.setattr(pgq_core, "handler", registry.handler)
    names: dict[str, Any] = {"registry": registry, "__name__": "tasks_of_the_page"}
    exec(BLOCKS[0], names)
    return names


def test_handlers_and_registries_of_the_page_can_be_made(tasks: dict[str, Any]) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS[1], names)

    assert tasks["registry"].types == ("bill", "send_email")
    assert names["jobs"].types == ("resize_image",)
    assert names["jobs"].has_middleware


def test_jobs_of_the_page_can_be_enqueued_and_claimed(
    dsn: str, tasks: dict[str, Any], conn: Connection[DictRow]
) -> None:
    exec(BLOCKS[2].replace("postgresql://localhost/app", dsn), tasks)

    types = [row["job_type"] for row in rows(conn, "SELECT job_type FROM jobs ORDER BY id")]
    assert types == ["send_email"] * 4 + ["bill"]

    with JobQueue(dsn, registry=tasks["registry"]) as queue:
        exec(BLOCKS[3], {**tasks, "queue": queue, "ClaimLost": ClaimLost, "work": lambda data: data["to"]})
    ended = rows(conn, "SELECT outcome, result FROM job_runs ORDER BY id")
    assert [row["outcome"] for row in ended] == ["succeeded"] * 3 + ["retried"]  # the bill has no "to"
    assert ended[0]["result"] == "a@example.org"
