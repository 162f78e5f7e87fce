"""The window of idempotency keys: a setting of ours that triggers on plain INSERTs have to know."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries


class KeyWindow(Duty):
    name = "key_window"

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float, seconds: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._seconds = seconds

    async def work(self, conn: AsyncConnection[Any]) -> None:
        if await self._queries.set_key_window(seconds=self._seconds).execute(conn):
            self._logger.info("key_window_set", seconds=self._seconds)
