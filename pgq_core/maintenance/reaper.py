"""The reaper: gives back the jobs of workers that are gone without anybody having seen how."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.domain.decision import FailureKind, decide_after_failure
from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob
from pgq_core.queries.closing import Closing, close_runs
from pgq_core.queries.orphans import OrphanRow
from pgq_core.queries.piecemeal import PASSED_BY_FOR, PassedBy

BATCH: Final = 500
STATISTICS_SLOT: Final = 15


class Reaper(Duty):
    """One transaction a batch: mark the silent workers, lock their jobs, decide, write guarded by each job's claim."""

    name = "reaper"

    def __init__(
        self, leadership: Leadership, queries: Queries, *, interval: float, stale_limit: float, random: Random
    ) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._stale_limit = timedelta(seconds=stale_limit)
        self._random = random
        self._passed_by = PassedBy()

    async def work(self, conn: AsyncConnection[Any]) -> None:
        if not await self._knows_the_time(conn):
            return
        try:
            await self._reap(conn, has_partitions=False)
        except psycopg.errors.CheckViolation:  # perhaps no partition for the day one of the jobs was claimed
            await self._queries.ensure_partitions(days_ahead=1).execute(conn)
            await self._reap(conn, has_partitions=True)

    async def _reap(self, conn: AsyncConnection[Any], *, has_partitions: bool) -> None:
        async with conn.transaction():
            lost = await self._queries.mark_lost_workers(stale_limit=self._stale_limit).fetch_all(conn)
            orphans = await self._lock_orphans(conn) if lost or self.is_rested() else []
            await self._complete(conn, [orphan.id for orphan in orphans if not orphan.claim_token])
            fates = {orphan.id: self._fate(orphan) for orphan in orphans if orphan.claim_token}
            closed, refused = await close_runs(
                conn, self._queries, list(fates.values()), slot=STATISTICS_SLOT, has_partitions=has_partitions
            )
        for worker_id in lost:
            self._logger.warning("worker_lost", worker_id=worker_id)
        for write, error in refused:
            self._pass_by(write, error)
        by_id = {orphan.id: orphan for orphan in orphans}
        for write in closed:
            self._log(by_id[write.id], write)
        if len(orphans) == BATCH:
            self.nudge()

    async def _lock_orphans(self, conn: AsyncConnection[Any]) -> list[OrphanRow]:
        """Right after a worker was lost, and from time to time: the look goes through all that runs."""
        began = time.monotonic()
        statement = self._queries.lock_lost_jobs(
            stale_limit=self._stale_limit, limit=BATCH, except_jobs=self._passed_by.ids()
        )
        orphans = await statement.fetch_all(conn)
        self.looked(began, found_all=len(orphans) < BATCH)
        return orphans

    async def _complete(self, conn: AsyncConnection[Any], ids: Sequence[int]) -> None:
        """Rows that somebody made by hand become claims that a later turn can give back."""
        if ids:
            await self._queries.complete_claims(ids).execute(conn)
            self._logger.warning("claims_completed", job_ids=ids[:20], count=len(ids))

    def _pass_by(self, write: Closing, error: psycopg.Error) -> None:
        """The database refuses this one: it must not stand in the way of the others, and is tried again later."""
        self._passed_by.add(write.id)
        self._logger.error("job_not_given_back", job_id=write.id, error=first_line(error), again_in=PASSED_BY_FOR)

    async def _knows_the_time(self, conn: AsyncConnection[Any]) -> bool:
        """Whether ages are real: after somebody has set the server's clock, everybody gets time to beat."""
        await self._queries.pull_back_beats().execute(conn)
        await self._leadership.clock.look(conn)
        return self._leadership.clock.is_trusted

    def _fate(self, orphan: OrphanRow) -> Closing:
        decision = decide_after_failure(
            FailureKind.VANISHED,
            attempts=orphan.attempts,
            max_attempts=orphan.max_attempts,
            losses=orphan.losses,
            suspect=orphan.suspect,
            policy=orphan.policy,
            random=self._random,
        )
        return orphan.closed(decision, error="lost: its worker is gone, nobody saw how", error_class="WorkerLost")

    def _log(self, orphan: OrphanRow, write: Closing) -> None:
        facts = {
            "worker_id": orphan.worker_id,
            "job_id": orphan.id,
            "job_type": orphan.job_type,
            "queue": orphan.queue,
            "attempt": orphan.attempts + 1,
            "error": write.error,
        }
        if isinstance(write, BuriedJob):
            self._logger.error("job_dead", **facts, reason=str(write.reason))
        else:
            self._logger.warning("job_lost", **facts)
