"""A bounded number of connections: opened when they are needed, waited for no longer than a request may take."""

from __future__ import annotations

import asyncio
import contextlib
import select
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.types.json import set_json_loads

from pgq_core.database import connect
from pgq_core.domain.payload import decode_any
from pgq_core.errors import DatabaseUnavailable, QueueClosed

GIVE_UP_EVERY: Final = 0.5
"""Seconds at least between two times that all are given up: each request of an outage would else open a new one."""


class Connections:
    """Each is used by one request at a time. One that has died, or is not as it was, is replaced at the next need.

    Who waits longer than `patience` seconds for one raises DatabaseUnavailable. A server that is back is used by the
    next request: nothing here waits for a turn of its own.
    """

    def __init__(
        self,
        dsn: str,
        *,
        size: int,
        patience: float,
        application_name: str,
        pinned_plans: bool = False,
        read_only: bool = False,
    ) -> None:
        self._dsn = dsn
        self._patience = patience
        self._application_name = application_name
        self._pinned_plans = pinned_plans
        self._read_only = read_only
        self._free = asyncio.Semaphore(size)
        self._idle: list[AsyncConnection[Any]] = []
        self._is_closed = False
        self._generation = 0
        """Counts how often all connections were given up."""
        self._given_up_at = -GIVE_UP_EVERY

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("all connections are in use") from None
        try:
            generation = self._generation
            conn = await self._taken()
            try:
                yield conn
            except psycopg.errors.ReadOnlySqlTransaction:
                await self._give_all_up()
                raise
            finally:
                await self._give_back(conn, generation)
        finally:
            self._free.release()

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _taken(self) -> AsyncConnection[Any]:
        if self._is_closed:
            raise QueueClosed
        while self._idle:
            conn = self._idle.pop()
            if not _is_dead(conn):
                return conn
            await conn.close()
        conn = await connect(
            self._dsn,
            application_name=self._application_name,
            statement_timeout=self._patience,
            pinned_plans=self._pinned_plans,
            read_only=self._read_only,
        )
        set_json_loads(decode_any, conn)
        return conn

    async def _give_all_up(self) -> None:
        """Sessions that began while the server was read-only stay so, also where it takes writes again."""
        now = time.monotonic()
        if now - self._given_up_at < GIVE_UP_EVERY:
            return
        self._given_up_at = now
        self._generation += 1  # those in use are closed when they come back
        while self._idle:
            await self._idle.pop().close()

    async def _give_back(self, conn: AsyncConnection[Any], generation: int) -> None:
        is_outdated = self._is_closed or generation != self._generation
        if is_outdated or conn.closed or conn.info.transaction_status != TransactionStatus.IDLE:
            await conn.close()
        else:
            self._idle.append(conn)


def _is_dead(conn: AsyncConnection[Any]) -> bool:
    """An idle connection has nothing to read: what the server has sent is its farewell. No round trip."""
    if conn.closed:
        return True
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return bool(poll.poll(0))
