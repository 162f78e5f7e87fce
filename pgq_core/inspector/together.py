"""Several statements in one round trip."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core.queries import Statement


async def fetch_together(conn: AsyncConnection[Any], *statements: Statement[Any]) -> list[list[Any]]:
    """The rows of each statement. All see the same `now()`: a pipeline is one transaction."""
    async with conn.pipeline():
        cursors = [await statement.start(conn) for statement in statements]
        return [await cursor.fetchall() for cursor in cursors]
