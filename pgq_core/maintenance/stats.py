"""Statistics get coarser with age: five seconds for an hour, a minute for two days, then an hour."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.maintenance.duty import Duty

BATCH: Final = 2000
STEPS: Final = (
    (timedelta(minutes=1), timedelta(hours=1)),
    (timedelta(hours=1), timedelta(days=2)),
)
"""(width of a bucket, age from which on)."""


class StatsRollup(Duty):
    name = "stats_rollup"

    async def work(self, conn: AsyncConnection[Any]) -> None:
        for step, older_than in STEPS:
            moved = await self._queries.roll_up_stats(step=step, older_than=older_than, limit=BATCH).fetch_one(conn)
            if moved and moved >= BATCH:
                self.nudge()
