"""When a worker makes due jobs of its queues pending: due retries start even when no maintenance runs anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.queries import Queries
from pgq_core.queries.careful_promotion import CarefulPromotion
from pgq_core.queries.piecemeal import PassedBy, is_refusal
from pgq_core.queries.upkeep import PromotedRow
from pgq_core.queries.wire import fetch_quickly
from pgq_core.worker.frontier import TRAIL

AT_ONCE: Final = 1000


class Promotions:
    """`due_at`: on the monotonic clock, when it is to be done next."""

    def __init__(
        self, queries: Queries, *, queues: Sequence[str], worker_id: str, poll: float, on_late: Callable[[], None]
    ) -> None:
        """`on_late`: jobs were promoted that may have been due before the bounds of our claims."""
        self._queries = queries
        self._queues = list(queues)
        self._worker_id = worker_id
        self._poll = poll
        self._on_late = on_late
        self._careful = CarefulPromotion(queries, logger_name="pgq.worker")
        self._promoted_at = time.monotonic()
        self._may_be_early = True
        """Whether `due_at` is only the poll's time, and not the one a job is due at."""
        self.due_at = 0.0

    @property
    def passed_by(self) -> PassedBy:
        return self._careful.passed_by

    def is_earlier(self, due_at: float) -> bool:
        """A job of ours is due then. Whether that is earlier than we thought."""
        if due_at >= self.due_at:
            return False
        self.due_at = due_at
        self._may_be_early = False
        return True

    def is_due(self, now: float, *, is_polling: bool) -> bool:
        return now >= self.due_at or (is_polling and self._may_be_early)

    async def promote(self, conn: AsyncConnection[Any]) -> int:
        """Answers how many there were."""
        row = await self._promote(conn)
        now = time.monotonic()
        if row.promoted and now - self._promoted_at > TRAIL:
            self._on_late()
        self._promoted_at = now
        rest = self._poll if row.next_due_in is None else min(max(row.next_due_in, 0.001), self._poll)
        self._may_be_early = rest == self._poll
        self.due_at = now + (0.0 if row.promoted >= AT_ONCE else rest)
        return row.promoted

    async def _promote(self, conn: AsyncConnection[Any]) -> PromotedRow:
        statement = self._queries.promote_due_jobs(
            queues=self._queues,
            limit=AT_ONCE,
            except_worker=self._worker_id,
            except_jobs=self._careful.passed_by.ids(),
        )
        try:
            (row,) = await fetch_quickly(conn, statement, self._queries.schema)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            return PromotedRow(await self._careful.promote(conn, self._queues, error), None, 0)
        return row
