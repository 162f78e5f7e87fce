"""How a producer looks for jobs in one queue: behind its bounds, and now and then in front of them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.domain.stretch import WHOLE_QUEUE, Stretch
from pgq_core.queries import Queries
from pgq_core.queries.claims import ClaimedRow, in_claim_order
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.queries.wire import fetch_quickly
from pgq_core.worker.careful_claims import CarefulClaims
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.frontier import Frontier
from pgq_core.worker.sweep import Sweep

TURN: Final = timedelta(seconds=3)
"""How long a process has the sweep of a queue (for the job types it serves) to itself, if it does not go on."""
_EVERYWHERE: Final = (WHOLE_QUEUE,)


class Search:
    """Claims from one queue."""

    def __init__(
        self,
        queue: str,
        queries: Queries,
        clock: DatabaseClock,
        *,
        worker_id: str,
        job_types: Sequence[str],
        is_thorough: bool,
        careful: CarefulClaims,
    ) -> None:
        """`is_thorough`: an empty answer means that nothing is there at all, not even in front of the bounds."""
        self._careful = careful
        self._queue = queue
        self._queries = queries
        self._clock = clock
        self._worker_id = worker_id
        self._job_types = list(job_types)
        self.turn = f"sweep {queue} {zlib.crc32(' '.join(sorted(job_types)).encode()):08x}"
        """The lease that a process needs for a sweep that takes long."""
        self._is_thorough = is_thorough
        self._is_dry = False
        """The last claim found nothing."""
        self.frontier = Frontier()
        self.sweep = Sweep(self.frontier)

    async def claim(self, conn: AsyncConnection[Any], limit: int) -> list[ClaimedRow]:
        """Up to `limit` jobs, in claim order but for those that a sweep found."""
        found: list[ClaimedRow] = []
        try:
            await self._look(conn, limit, found)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            rows = await self._careful.claim(conn, [self._queue], limit - len(found), error, suspect=False)
            if rows:
                self._clock.set(rows[-1].claimed_at)
            found += rows
            self.sweep.hurry()  # the bounds know nothing of these
        self._is_dry = not found
        return found

    async def _look(self, conn: AsyncConnection[Any], limit: int, found: list[ClaimedRow]) -> None:
        now = time.monotonic()
        if self._is_dry and (self._is_thorough or (self.sweep.is_due(now) and self.sweep.is_quick(now))):
            found += await self._claim_anywhere(conn, limit)
            return
        # Behind the claim, so that nobody waits for it; in front, where claims have left it no room for a while.
        if self.sweep.is_overdue(now):
            found += await self._sweep(conn, limit, now)
        if len(found) < limit:
            found += await self._claim_behind(conn, limit - len(found))
        if len(found) < limit and self.sweep.is_due(now):
            found += await self._sweep(conn, limit - len(found), now)

    async def _claim_behind(self, conn: AsyncConnection[Any], limit: int) -> list[ClaimedRow]:
        began = time.monotonic()
        rows = await self._fetch(conn, self.frontier.stretches(), limit, is_thorough=False)
        self._advance(rows, limit, began)
        return rows

    async def _claim_anywhere(self, conn: AsyncConnection[Any], limit: int) -> list[ClaimedRow]:
        began = time.monotonic()
        rows = await self._fetch(conn, _EVERYWHERE, limit)
        now = time.monotonic()
        if rows:
            self._is_dry = False
        else:
            self.sweep.began_at_the_start(now - began, now)
        self._advance(rows, limit, began)
        return rows

    async def _sweep(self, conn: AsyncConnection[Any], limit: int, now: float) -> list[ClaimedRow]:
        stretches = self.sweep.next_slice(now)
        if not stretches:
            return []
        if not self.sweep.is_quick(now) and not await self._has_turn(conn):
            self.sweep.put_off(now)
            return []
        began = time.monotonic()
        rows = await self._fetch(conn, stretches, limit)
        now = time.monotonic()
        if len(rows) < limit:
            self.sweep.walked(stretches, now - began, now)
        else:
            self.frontier.rewind(rows)
            self.sweep.put_off(now)
        return rows

    async def _has_turn(self, conn: AsyncConnection[Any]) -> bool:
        statement = self._queries.acquire_lease(name=self.turn, holder=self._worker_id, duration=TURN)
        try:
            return bool(await statement.fetch_one(conn))
        except psycopg.errors.LockNotAvailable:  # a stranger holds it: a sweep that two make is only dearer
            return True

    async def _fetch(
        self, conn: AsyncConnection[Any], stretches: Sequence[Stretch], limit: int, *, is_thorough: bool = True
    ) -> list[ClaimedRow]:
        statement = self._queries.claim_jobs(
            queue=self._queue,
            worker_id=self._worker_id,
            limit=limit,
            job_types=self._job_types,
            lease=None,
            stretches=stretches,
            is_thorough=is_thorough,
            except_jobs=self._careful.passed_by.ids(),
        )
        rows = in_claim_order(await fetch_quickly(conn, statement, self._queries.schema))
        if rows:
            self._clock.set(rows[-1].claimed_at)
        return rows

    def _advance(self, rows: Sequence[ClaimedRow], limit: int, began: float) -> None:
        # Before the first answer with a row we only know our own clock, which must not decide anything.
        if self._clock.is_set:
            self.frontier.advance(rows, is_full=len(rows) >= limit, now=self._clock.epoch(began))
