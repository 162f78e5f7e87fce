"""LISTEN on the schema's channel. Only a hint: whoever listens also polls."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from pgq_core.database import connect, is_pooled
from pgq_core.logs import get_logger
from pgq_core.queries import Queries

PROBE_AFTER = 30.0
"""Seconds of silence after which the connection has to prove that it lives."""
PROBE_LIMIT = 5.0


class Listener:
    """One connection that hears the words of the wake channel while nobody uses it, and opens itself again when lost.

    One task uses it: statements on `connection()`, and `wait()` between them. `wake()` may come from any other task.
    """

    def __init__(
        self,
        dsn: str,
        schema: str,
        *,
        application_name: str,
        pinned_plans: bool = False,
        lock_limit: float | None = None,
        prepare: Callable[[AsyncConnection[Any]], None] | None = None,
    ) -> None:
        """`prepare` is called with each new connection."""
        self._dsn = dsn
        self._queries = Queries(schema)
        self._application_name = application_name
        self._pinned_plans = pinned_plans
        self._lock_limit = lock_limit
        self._prepare = prepare
        self._conn: AsyncConnection[Any] | None = None
        self._heard: set[str] = set()
        self._resting: asyncio.Future[None] | None = None
        self._is_woken = False
        self._alive_at = 0.0
        self._has_said_it_is_deaf = False

    async def connection(self) -> AsyncConnection[Any]:
        """The open, listening connection. Raises DatabaseUnavailable when there is none to be had."""
        if self._conn is not None and self._conn.closed:
            await self.drop()
        if self._conn is None:
            self._conn = await self._open()
        return self._conn

    async def wait(self, timeout: float) -> frozenset[str]:
        """The words heard since the last call; at once when there are some, else after a word, `wake()` or `timeout`.

        Never raises for a lost connection, but returns early when it breaks: `connection()` then opens another.
        """
        deadline = time.monotonic() + timeout
        while not (self._heard or self._is_woken) and (left := deadline - time.monotonic()) > 0:
            if not await self._watch(left):
                break
        self._is_woken = False
        heard, self._heard = frozenset(self._heard), set()
        return heard

    def wake(self) -> None:
        """Ends the current `wait`, or the next one."""
        self._is_woken = True
        self._end_rest()

    async def drop(self) -> None:
        """Throws the connection away, for example after an error on it."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):  # it may be broken in any way; the server notices by itself
                await conn.close()

    async def close(self) -> None:
        await self.drop()

    async def _open(self) -> AsyncConnection[Any]:
        conn = await connect(
            self._dsn,
            application_name=self._application_name,
            pinned_plans=self._pinned_plans,
            lock_limit=self._lock_limit,
        )
        try:
            if self._prepare is not None:
                self._prepare(conn)
            conn.add_notify_handler(lambda notify: self._heard.add(notify.payload))
            channel = await self._queries.wake_channel().fetch_one(conn)
            # LISTEN takes no parameter; the channel's name comes from our own function.
            await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel or "")))
        except BaseException:
            await conn.close()
            raise
        if is_pooled(conn) and not self._has_said_it_is_deaf:
            self._has_said_it_is_deaf = True
            get_logger("pgq.listener").warning(
                "notifications_are_off", reason="a connection pooler is in between: jobs are found by polling alone"
            )
        self._alive_at = time.monotonic()
        return conn

    async def _watch(self, timeout: float) -> bool:
        """Waits for activity; False when the connection was lost meanwhile."""
        conn = self._conn
        if conn is None or conn.closed:
            await self._rest(timeout)
            return True
        if time.monotonic() - self._alive_at > PROBE_AFTER and not await self._answers(conn):
            return False
        loop, descriptor = asyncio.get_running_loop(), conn.fileno()
        loop.add_reader(descriptor, self._end_rest)
        try:
            await self._rest(min(timeout, PROBE_AFTER))
        finally:
            loop.remove_reader(descriptor)
        return await self._take_words(conn)

    async def _rest(self, timeout: float) -> None:
        # A bare future: an event under a time-out is thrice as many calls between a notification and its job.
        if self._is_woken:
            return
        loop = asyncio.get_running_loop()
        self._resting = loop.create_future()
        timer = loop.call_later(timeout, self._end_rest)
        try:
            await self._resting
        finally:
            timer.cancel()
            self._resting = None

    def _end_rest(self) -> None:
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)

    async def _take_words(self, conn: AsyncConnection[Any]) -> bool:
        try:
            conn.pgconn.consume_input()
            while notify := conn.pgconn.notifies():
                self._heard.add(notify.extra.decode("utf-8", "replace"))
                self._alive_at = time.monotonic()
        except psycopg.Error:
            await self.drop()
            return False
        return True

    async def _answers(self, conn: AsyncConnection[Any]) -> bool:
        """Whether the server still answers on this connection: a half-open network looks just like silence."""
        try:
            async with asyncio.timeout(PROBE_LIMIT):
                await self._queries.wake_channel().fetch_one(conn)
        except (psycopg.Error, OSError, TimeoutError):
            await self.drop()
            return False
        self._alive_at = time.monotonic()
        return True
