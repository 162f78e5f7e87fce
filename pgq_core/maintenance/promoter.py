"""The promoter: makes due jobs pending in all queues, also in those that no worker of this process serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries
from pgq_core.queries.careful_promotion import CarefulPromotion
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.queries.upkeep import PromotedRow

PER_QUEUE: Final = 1000
_SHORTEST: Final = 0.005


class Promoter(Duty):
    """Looks at each poll interval, and earlier when a job is due earlier."""

    name = "promoter"

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._longest = interval
        self._careful = CarefulPromotion(queries, logger_name="pgq.promoter")

    async def work(self, conn: AsyncConnection[Any]) -> None:
        self.interval = self._longest
        queues = await self._queries.list_scheduled_queues().fetch_all(conn)
        if not queues:
            return
        row = await self._promote(conn, queues)
        if row.promoted >= PER_QUEUE:
            self.nudge()
        if row.next_due_in is not None:
            self.interval = max(min(row.next_due_in, self._longest), _SHORTEST)
        if row.promoted:
            self._logger.debug("jobs_promoted", count=row.promoted)

    async def _promote(self, conn: AsyncConnection[Any], queues: Sequence[str]) -> PromotedRow:
        statement = self._queries.promote_due_jobs(
            queues=queues, limit=PER_QUEUE, except_jobs=self._careful.passed_by.ids()
        )
        try:
            (row,) = await statement.fetch_all(conn)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            return PromotedRow(await self._careful.promote(conn, queues, error), None, 0)
        return row
