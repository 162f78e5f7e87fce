"""One connection that comes back by itself: opened when it is needed, dropped when it breaks or does not answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import connect, translated
from pgq_core.errors import DatabaseUnavailable

T = TypeVar("T")
Work = Callable[[AsyncConnection[Any]], Awaitable[T]]
SILENCE = 5.0
"""Seconds beyond the server's own limit on a statement after which each wait for it ends."""
Check = Callable[[AsyncConnection[Any]], Awaitable[object]]
"""Asks whether the schema fits; raises a SchemaError when it does not."""


class NoAnswer(DatabaseUnavailable):
    """A server that accepted a statement and then said nothing."""


class Lane:
    """Work goes over one connection, one piece after the other. A new connection first does the `check`.

    `answer_within`: seconds after which a silent server counts as gone, for a piece of work as a whole. Psycopg waits
    up to five seconds more for a cancelled statement; closing the connection under it ends the wait at once.
    """

    def __init__(
        self,
        dsn: str,
        check: Check,
        *,
        application_name: str,
        statement_timeout: float,
        read_only: bool = False,
        answer_within: float | None = None,
    ) -> None:
        self._dsn = dsn
        self._check = check
        self._application_name = application_name
        self._statement_timeout = statement_timeout
        self._read_only = read_only
        self._answer_within = answer_within
        self._lock = asyncio.Lock()
        self._conn: AsyncConnection[Any] | None = None
        self._is_closed = False

    async def read(self, work: Work[T]) -> T:
        """Run `work`; once more when the connection turns out to have died while nobody used it."""
        async with self._lock:
            was_open = self._conn is not None
            try:
                return await self._run(work)
            except DatabaseUnavailable as error:
                if not was_open or self._conn is not None or self._is_closed or isinstance(error, NoAnswer):
                    raise
                return await self._run(work)

    async def write(self, work: Work[T]) -> T:
        """Run `work` once: over a connection that has just answered, since a write is never repeated blindly."""
        async with self._lock:
            if self._conn is not None:
                with contextlib.suppress(psycopg.Error):
                    await self._conn.execute("")
                self._drop_when_broken()
            return await self._run(work)

    async def close(self) -> None:
        """Leave now, whatever is under way."""
        self._is_closed = True
        self._cut()
        self._conn = None

    async def _run(self, work: Work[T]) -> T:
        conn = await self._opened()
        timer = self._start_timer()
        try:
            return await work(conn)
        except psycopg.Error as error:
            if conn.closed and timer is not None and timer.when() <= asyncio.get_running_loop().time():
                raise NoAnswer(f"no answer within {self._answer_within:g} s") from error
            raise translated(error) from error
        finally:
            if timer is not None:
                timer.cancel()
            self._drop_when_broken()

    async def _opened(self) -> AsyncConnection[Any]:
        if self._conn is not None:
            return self._conn
        if self._is_closed:
            raise DatabaseUnavailable("this console is leaving")
        conn = await connect(
            self._dsn,
            application_name=self._application_name,
            statement_timeout=self._statement_timeout,
            read_only=self._read_only,
            answer_within=self._statement_timeout + SILENCE,
        )
        try:
            await self._check(conn)
        except BaseException:
            conn.pgconn.finish()
            raise
        self._conn = conn
        return conn

    def _start_timer(self) -> asyncio.TimerHandle | None:
        if self._answer_within is None:
            return None
        return asyncio.get_running_loop().call_later(self._answer_within, self._cut)

    def _cut(self) -> None:
        if self._conn is not None:
            self._conn.pgconn.finish()

    def _drop_when_broken(self) -> None:
        """A connection in the middle of something that was given up is as good as broken."""
        if self._conn is None:
            return
        is_idle = self._conn.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if self._conn.closed or not is_idle:
            self._conn.pgconn.finish()
            self._conn = None
