"""Looking at rows with plain SQL."""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import DictRow


def rows(conn: Connection[DictRow], query: LiteralString, *params: object) -> list[dict[str, Any]]:
    return conn.execute(query, params).fetchall()


def row(conn: Connection[DictRow], query: LiteralString, *params: object) -> dict[str, Any]:
    (only,) = rows(conn, query, *params)
    return only


def value(conn: Connection[DictRow], query: LiteralString, *params: object) -> Any:
    (only,) = row(conn, query, *params).values()
    return only
