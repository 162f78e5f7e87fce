"""Jobs that can never run: those with no attempt left, and those whose type nobody has known for long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.domain.fingerprint import fingerprint
from pgq_core.domain.job import DeathReason
from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.maintenance.reaper import STATISTICS_SLOT
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob
from pgq_core.queries.piecemeal import PASSED_BY_FOR, PassedBy, write_what_can_be
from pgq_core.queries.upkeep import DoomedRow

BATCH: Final = 500
HOLDER: Final = "maintenance"


class Undertaker(Duty):
    """Claims a batch and buries it in one transaction: no job is ever in between."""

    reason: DeathReason

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self.passed_by = PassedBy()

    async def work(self, conn: AsyncConnection[Any]) -> None:
        if not self.is_rested():
            return
        began = time.monotonic()
        try:
            count = await self._bury(conn, has_partitions=False)
        except psycopg.errors.CheckViolation:
            await self._queries.ensure_partitions(days_ahead=1).execute(conn)
            count = await self._bury(conn, has_partitions=True)
        self.looked(began, found_all=count < BATCH)
        if count == BATCH:
            self.nudge()

    def take(self) -> Statement[DoomedRow]:
        """The statement that claims a batch of the doomed."""
        raise NotImplementedError

    def words(self, row: DoomedRow) -> str:
        """What the dead letter says."""
        raise NotImplementedError

    async def _bury(self, conn: AsyncConnection[Any], *, has_partitions: bool) -> int:
        """How many were buried. One that the database refuses to bury stays where it was, and is tried again."""

        async def write(letters: Sequence[BuriedJob]) -> None:
            await self._queries.bury_jobs(letters, slot=STATISTICS_SLOT).execute(conn)

        async with conn.transaction():
            rows = await self.take().fetch_all(conn)
            letters = [self._letter(row) for row in rows]
            refused = {
                letter.id: error
                for letter, error in await write_what_can_be(conn, letters, write, has_partitions=has_partitions)
            }
            if refused:
                await self._queries.release_jobs(
                    [(row.id, row.claim_token) for row in rows if row.id in refused]
                ).execute(conn)
        for row in rows:
            facts = {"job_id": row.id, "job_type": row.job_type, "queue": row.queue, "reason": str(self.reason)}
            if row.id in refused:
                self.passed_by.add(row.id)
                self._logger.error("job_not_buried", **facts, error=first_line(refused[row.id]), again_in=PASSED_BY_FOR)
            else:
                self._logger.error("job_dead", **facts)
        return len(rows) - len(refused)

    def _letter(self, row: DoomedRow) -> BuriedJob:
        words = self.words(row)
        return BuriedJob(
            id=row.id,
            token=row.claim_token,
            worker_id=HOLDER,
            started=None,
            finished=None,
            reason=self.reason,
            charge=0,
            error=words,
            fingerprint=fingerprint(row.job_type, None, words, None),
            ran=False,
        )


class SpentBudgets(Undertaker):
    """Jobs whose `max_attempts` was lowered below what they have spent."""

    name = "spent_budgets"
    reason = DeathReason.EXHAUSTED

    def take(self) -> Statement[DoomedRow]:
        return self._queries.claim_spent_jobs(holder=HOLDER, limit=BATCH, except_jobs=self.passed_by.ids())

    def words(self, row: DoomedRow) -> str:
        return row.last_error or "all attempts are spent"


class UnknownTypes(Undertaker):
    """Jobs that have been due for long, in queues where workers live of which none knows their type."""

    name = "unknown_types"
    reason = DeathReason.UNKNOWN_TYPE

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float, after: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._after = timedelta(seconds=after)

    def take(self) -> Statement[DoomedRow]:
        return self._queries.claim_unknown_jobs(
            holder=HOLDER, after=self._after, limit=BATCH, except_jobs=self.passed_by.ids()
        )

    def words(self, row: DoomedRow) -> str:
        span = str(self._after).removesuffix(", 0:00:00")
        return f"no worker has known the type {row.job_type} for {span}: pass its module to pgq-core worker --app"
