"""What is done for the application, by its workers. What the queue adds ends in `# pgq`."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core import handler  # pgq


@handler("welcome", transactional=True)  # pgq
async def welcome(data: dict[str, int], conn: AsyncConnection[Any]) -> None:
    await conn.execute("UPDATE customers SET welcomed = true WHERE id = %s", (data["customer"],))
