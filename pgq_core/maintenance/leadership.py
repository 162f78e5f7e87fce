"""One process does the maintenance of a schema: who holds a lease row. That saves work; correctness needs no leader."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import LOCK_LIMIT, connect
from pgq_core.domain.health import LoopHealth, encode_loops
from pgq_core.errors import DatabaseUnavailable
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.maintenance.stepped_clock import ClockWatch
from pgq_core.plain_settings import AnySettings
from pgq_core.queries import Queries
from pgq_core.service import Pauses

LEASE_NAME: Final = "maintenance"
CALL_LIMIT: Final = 60.0


class Leadership:
    """Lends the maintenance connection to one duty at a time, while the lease is ours; a follower keeps none open."""

    def __init__(self, settings: AnySettings, *, loops: Callable[[], Iterable[LoopHealth]] = tuple) -> None:
        """`loops`: what is written down with the lease."""
        self._loops = loops
        self.patience = 2 * settings.stale_limit
        """Seconds that any duty may take to its next good turn: others use the connection before it."""
        self._dsn = settings.dsn or ""
        self._queries = Queries(settings.db_schema)
        self._holder = uuid.uuid4().hex
        # Followers look as well: after a step any of them may be the next leader.
        self.clock = ClockWatch(self._queries, tolerance=settings.stale_limit / 6, patience=settings.stale_limit)
        # A dead leader's lease has to be over well before the jobs of a dead worker are due to be rescued.
        self._duration = settings.stale_limit / 2
        self._ask_every = min(settings.reaper_interval, self._duration / 2)
        self._ask_at = 0.0
        self._refusal: DatabaseUnavailable | None = None
        """Why the last connection was not to be had."""
        self._try_at = 0.0
        self._pauses = Pauses(base=2.0, cap=2.0)
        self._conn: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._logger = get_logger("pgq.maintenance")
        self._locks = RepeatedTrouble(self._logger)
        self.is_leader = False

    @contextlib.asynccontextmanager
    async def lead(self) -> AsyncIterator[AsyncConnection[Any] | None]:
        """The connection, or None when another process leads. Any error throws the connection away."""
        async with self._lock:
            try:
                async with asyncio.timeout(CALL_LIMIT):
                    yield await self._connection_of_leader()
            except BaseException:
                await self._close()
                raise

    async def step_down(self) -> None:
        """Lets the next one lead at once."""
        async with self._lock:
            if self.is_leader and self._conn is not None:
                await self._queries.give_up_lease(name=LEASE_NAME, holder=self._holder).execute(self._conn)
            await self._close()

    async def _connection_of_leader(self) -> AsyncConnection[Any] | None:
        now = time.monotonic()
        if now >= self._ask_at:
            await self._ask(now)
        elif self.is_leader and (self._conn is None or self._conn.closed):
            await self._open()
        return self._conn if self.is_leader else None

    async def _ask(self, now: float) -> None:
        if self._conn is None or self._conn.closed:
            await self._open()
        if self._conn is None:
            return
        await self.clock.look(self._conn)
        was_leader, self.is_leader = self.is_leader, await self._acquire(self._conn)
        self._ask_at = now + self._ask_every
        if self.is_leader is not was_leader:
            self._logger.info("maintenance_taken_over" if self.is_leader else "maintenance_left_to_another")
        if not self.is_leader:
            await self._close()

    async def _acquire(self, conn: AsyncConnection[Any]) -> bool:
        """Whether we lead. Where a stranger's transaction holds the lease row everybody does: better twice than not."""
        statement = self._queries.acquire_lease(
            name=LEASE_NAME,
            holder=self._holder,
            duration=timedelta(seconds=self._duration),
            loops=encode_loops(self._loops()),
        )
        try:
            is_ours = bool(await statement.fetch_all(conn))
        except psycopg.errors.LockNotAvailable as error:
            self._locks.say("lease_is_locked", error)
            return True
        self._locks.over("lease_is_free_again")
        return is_ours

    async def _open(self) -> None:
        """One try for all duties that ask meanwhile: each alone backs off, together they would still storm."""
        if self._refusal is not None and time.monotonic() < self._try_at:
            raise self._refusal.with_traceback(None)
        try:
            self._conn = await connect(
                self._dsn, application_name="pgq maintenance", pinned_plans=True, lock_limit=LOCK_LIMIT
            )
        except DatabaseUnavailable as error:
            self._refusal, self._try_at = error, time.monotonic() + self._pauses.next()
            raise
        self._refusal = None

    async def _close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):  # it may be broken in any way
                await conn.close()
