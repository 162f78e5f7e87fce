"""A small stage for one statement: rows that it must touch beside rows that miss one condition each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from pgq_core.sql import query_text
from tests.conftest import SCHEMA
from tests.support.actors import Actor, Cast
from tests.support.queue_database import QueueDatabase, Row

LOCK_LIMIT = "250ms"
"""How long a statement that waits for nobody may wait before the play is over."""

_NUMBERED = {"jobs", "dead_letter_jobs", "operations"}

Scenario = Callable[["Play"], None]


def composed(text: str) -> str:
    """A statement of the product with its objects qualified, as `pgq_core.sql` does it."""
    tokens = sql.Literal(f'"{SCHEMA}".claim_token_seq')
    return sql.SQL(text).format(schema=sql.Identifier(SCHEMA), token_sequence=tokens).as_string(None)  # type: ignore[arg-type]  # a mutant is no literal


@dataclass
class Play:
    """Runs statements of the product, one of them perhaps mutilated, on tables that the play fills itself."""

    database: QueueDatabase
    mutilated: dict[str, str] = field(default_factory=dict)
    _cast: Cast | None = None

    def text(self, name: str) -> str:
        return composed(self.mutilated.get(name) or query_text(name))

    def run(self, name: str, /, **params: object) -> list[Row]:
        return run_on(self.database.connection(), self.text(name), params)

    def ids(self, name: str, /, **params: object) -> list[Any]:
        return sorted(row["id"] for row in self.run(name, **params))

    def count(self, name: str, /, **params: object) -> int:
        """How many rows it touched."""
        cursor = self.database.connection().execute(self.text(name), params, prepare=False)  # type: ignore[arg-type]  # our own text
        return cursor.rowcount

    def values(self, statement: str, *params: object) -> list[Any]:
        return [next(iter(row.values())) for row in self.database.all(statement, *params)]

    # Rows

    def add(self, table: str, **columns: object) -> Any:
        names, signs = ", ".join(columns), ", ".join(["%s"] * len(columns))
        values = [_plain(value) for value in columns.values()]
        if table not in _NUMBERED:
            return self.database.run(f"INSERT INTO {table} ({names}) VALUES ({signs})", *values)
        return self.database.value(f"INSERT INTO {table} ({names}) VALUES ({signs}) RETURNING id", *values)

    def job(self, **columns: object) -> int:
        """A pending job of queue q and type t, unless said otherwise."""
        given = {"queue": "q", "payload": {"type": columns.pop("type", "t"), "data": {}}, **columns}
        job_id = self.add("jobs", **given)
        assert isinstance(job_id, int)
        return job_id

    def due(self, seconds: float, **columns: object) -> int:
        """A job that is due in so many seconds."""
        job_id = self.job(**columns)
        self.database.run(
            "UPDATE jobs SET not_before = now() + make_interval(secs => %s), "
            "created_at = now() + make_interval(secs => least(%s, 0)) WHERE id = %s",
            seconds,
            seconds,
            job_id,
        )
        return job_id

    def running(self, token: int = 1, worker: str = "w", **columns: object) -> int:
        return self.job(locked_by=worker, claim_token=token, **columns)

    def paused(self, queue: str) -> None:
        self.add("queues", name=queue, paused=True)

    def worker(self, worker_id: str, **columns: object) -> str:
        given = {"host": "h", "queues": ["q"], "concurrency": 1, "state": "running", **columns}
        self.add("workers", id=worker_id, **given)
        return worker_id

    def letter(self, job_id: int = 1, **columns: object) -> int:
        given = {
            "original_job_id": job_id,
            "queue": "q",
            "payload": {"type": "t", "data": {}},
            "last_error": "broken",
            "attempts": 1,
            **columns,
        }
        if given.get("resolution") is not None:
            given.setdefault("resolved_by", "somebody")
            given.setdefault("resolved_at", "2026-01-01")
        letter_id = self.add("dead_letter_jobs", **given)
        assert isinstance(letter_id, int)
        return letter_id

    def age(self, table: str, column: str, seconds: float, where: str, *params: object) -> None:
        """Moves a row's time into the past."""
        self.database.run(
            f"UPDATE {table} SET {column} = now() - make_interval(secs => %s) WHERE {where}", seconds, *params
        )

    def status(self, job_id: int) -> str | None:
        job = self.database.job(job_id)
        return None if job is None else job["status"]

    # Several sessions

    @property
    def cast(self) -> Cast:
        assert self._cast is not None, "this play has one session only"
        return self._cast

    def by(self, name: str, /, **params: object) -> Callable[[Actor], list[Row]]:
        """The statement as an act of an actor."""
        text = self.text(name)
        return lambda actor: run_on(actor.conn, text, params)


UNLESS_SAID: dict[str, object] = {"except_jobs": []}


def run_on(conn: psycopg.Connection[Row], text: str, params: dict[str, object]) -> list[Row]:
    cursor = conn.execute(text, {**UNLESS_SAID, **params}, prepare=False)  # type: ignore[arg-type]  # our own text
    return cursor.fetchall() if cursor.description else []


def _plain(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value
