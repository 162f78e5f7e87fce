"""The statements only tests run: `sql/testing/<name>.sql`, bound like the others."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from psycopg import sql

from pgq_core.domain.job import Job
from pgq_core.queries import Statement
from pgq_core.sql import beside_parameters

T = TypeVar("T")

MAX_LISTED = 10_000


class TestingStatements:
    """Method name = file name."""

    __test__ = False

    def __init__(self, schema: str) -> None:
        self._schema = schema

    def empty_tables(self) -> Statement[Any]:
        return self._bound("empty_tables")

    def travel(self, span: timedelta) -> Statement[int]:
        return self._bound("travel", int, span=span)

    def list_enqueued(self, *, job_type: str | None = None, queue: str | None = None) -> Statement[Job]:
        return self._bound("list_enqueued", Job, job_type=job_type, queue=queue, limit=MAX_LISTED)

    def list_queues(self) -> Statement[str]:
        return self._bound("list_queues", str, limit=MAX_LISTED)

    def hold_schema(self) -> Statement[Any]:
        return self._bound("hold_schema", name=self._schema)

    def list_abandoned_schemas(self, prefix: str) -> Statement[str]:
        return self._bound("list_abandoned_schemas", str, prefix=prefix, limit=MAX_LISTED)

    def drop_schema(self) -> Statement[Any]:
        return self._bound("drop_schema")

    def _bound(self, name: str, row: type[T] | None = None, /, **params: object) -> Statement[T]:
        return Statement(name, _composed(name, self._schema), params, row)


@cache
def _composed(name: str, schema: str) -> str:
    text = (files("pgq_core.sql") / "testing" / f"{name}.sql").read_text(encoding="utf-8")
    parts = {
        "schema": beside_parameters(sql.Identifier(schema)),
        "schema_name": beside_parameters(sql.Literal(schema)),
    }
    return sql.SQL(text).format(**parts).as_string(None)
