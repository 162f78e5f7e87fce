"""The connections of a queue: a pool opened at its first use, whose connections have not died in the meantime.

The pool opens connections, bounds their number, waits and comes back from outages. What is given back while nobody
waits stays at hand in front of it: a way through the pool and back costs an enqueue 20 us, a tenth of it all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import weakref
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, Connection
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from pgq_core.bounded import BoundedAsyncConnection, BoundedConnection
from pgq_core.domain.payload import decode_any
from pgq_core.errors import MissingRights, QueueClosed, SchemaError, SchemaMissing
from pgq_core.job_queue.target import Target
from pgq_core.migrate import USUAL_SCHEMAS, check_schema, check_schema_async
from pgq_core.queries.wire import Wire

RECONNECT_TIMEOUT: Final = 10.0
"""Seconds a pool tries on its own for a lost connection; after that the next caller makes it try again."""
AT_HAND: Final = 2
"""Connections kept in front of the pool; those beyond go back into it, and it closes what it does not need."""
DISTRUST_EVERY: Final = 0.5
"""Seconds at least between two times that all are given up: each call of an outage would else open a new one."""
RENEWED_AFTER: Final = 3600.0
"""Seconds after which a connection goes through the pool, which replaces connections of this age."""
SyncConnection: TypeAlias = Connection[Any]
AsyncConnectionAny: TypeAlias = AsyncConnection[Any]


class PlainSession(BoundedConnection):
    """A connection of ours with its short way."""

    wire: Wire
    born_at: float


class AsyncSession(BoundedAsyncConnection):
    wire: Wire
    born_at: float


class Connections:
    """For the plain queue; usable from many threads, and again in a forked child, which gets connections of its own."""

    def __init__(self, target: Target, *, max_size: int) -> None:
        self._target = target
        self._max_size = max_size
        self._begin()
        _ALIVE.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._pool: ConnectionPool[PlainSession] | None = None
        self._at_hand: list[PlainSession] = []
        self._trusted_from = 0.0
        self._waiting = 0
        """Threads that ask the pool: what is given back meanwhile is theirs."""
        self._is_closed = False

    def take(self) -> PlainSession:
        """Waits for a free one, bounded by the queue's timeout."""
        pool = self._pool
        if pool is None:
            pool = self._opened()
        connection = self._taken_at_hand(pool)
        return self._taken_from(pool) if connection is None else connection

    def give_back(self, connection: PlainSession) -> None:
        pool = self._pool
        if pool is None:  # closed meanwhile
            connection.close()
        elif self._waiting or len(self._at_hand) >= AT_HAND or not _may_stay(connection):
            pool.putconn(connection)
        else:
            self._at_hand.append(connection)
            # Looked at again, as whoever waits looks here again: one of the two sees the other.
            if self._is_wanted_elsewhere(pool):
                self._clear_hand(self._pool)

    def distrust_all(self) -> None:
        """None of those opened so far is served again.

        For a server that was read-only: its sessions stay so when it takes writes again.
        """
        self._trusted_from = _renewed(self._trusted_from)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            pool, self._pool = self._pool, None
        self._clear_hand(None)
        if pool is not None:
            pool.close()

    def start_anew_in_child(self) -> None:
        """The parent's sockets and locks are not ours. Nothing is closed: that would end the parent's sessions."""
        if self._pool is not None:
            _LEFT_TO_THE_PARENT.append((self._pool, self._at_hand))
        is_closed = self._is_closed
        self._begin()
        self._is_closed = is_closed

    def _is_wanted_elsewhere(self, pool: ConnectionPool[PlainSession]) -> bool:
        return self._waiting > 0 or self._pool is not pool

    def _taken_at_hand(self, pool: ConnectionPool[PlainSession]) -> PlainSession | None:
        while self._at_hand:
            try:
                connection = self._at_hand.pop()
            except IndexError:  # another thread was faster
                return None
            if _is_good(connection, self._trusted_from):
                return connection
            connection.close()
            pool.putconn(connection)
        return None

    def _taken_from(self, pool: ConnectionPool[PlainSession]) -> PlainSession:
        with self._lock:
            self._waiting += 1
        try:
            if (connection := self._taken_at_hand(pool)) is not None:
                return connection
            for _ in range(self._max_size):
                connection = pool.getconn()
                # The pool's own check would sleep for a second before it looks at the next connection.
                if _is_good(connection, self._trusted_from):
                    return connection
                connection.close()  # so that the pool replaces it
                pool.putconn(connection)
            return pool.getconn()
        except PoolClosed:  # while we waited for it
            raise QueueClosed from None
        except PoolTimeout:
            self._probe()  # says why, when the server is the reason
            raise
        finally:
            with self._lock:
                self._waiting -= 1

    def _clear_hand(self, pool: ConnectionPool[PlainSession] | None) -> None:
        with contextlib.suppress(IndexError):
            while True:
                connection = self._at_hand.pop()
                if pool is None:
                    connection.close()
                else:
                    pool.putconn(connection)

    def _opened(self) -> ConnectionPool[PlainSession]:
        with self._lock:
            if self._is_closed:
                raise QueueClosed
            if self._pool is None:
                self._look_once()
                pool = ConnectionPool(
                    self._target.conninfo,
                    connection_class=PlainSession,
                    kwargs=self._target.arguments,
                    min_size=0,
                    max_size=self._max_size,
                    timeout=self._target.timeout,
                    reconnect_timeout=RECONNECT_TIMEOUT,
                    configure=_furnish,
                    open=False,
                    name=self._target.application_name,
                )
                pool.open()
                self._pool = pool
            return self._pool

    def _look_once(self) -> None:
        """Neither a wrong password nor a missing schema shall be a matter of waiting."""
        with BoundedConnection.connect(self._target.conninfo, **self._target.arguments) as connection:
            try:
                check_schema(connection, self._target.schema)
            except MissingRights:
                return  # who may only insert may do that
            except SchemaMissing as missing:
                for schema in USUAL_SCHEMAS:
                    if _has_tables(connection, schema):
                        raise SchemaMissing(missing.schema, elsewhere=schema) from None
                raise

    def _probe(self) -> None:
        BoundedConnection.connect(self._target.conninfo, **self._target.arguments).close()


class AsyncConnections:
    """For the asynchronous queue; belongs to the event loop that used it first."""

    def __init__(self, target: Target, *, max_size: int) -> None:
        self._target = target
        self._max_size = max_size
        self._begin()
        _ALIVE.add(self)

    def _begin(self) -> None:
        self._pool: AsyncConnectionPool[AsyncSession] | None = None
        self._at_hand: list[AsyncSession] = []
        self._trusted_from = 0.0
        self._waiting = 0
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def take(self) -> AsyncSession:
        """Waits for a free one, bounded by the queue's timeout."""
        pool = await self._opened()
        while self._at_hand:
            connection = self._at_hand.pop()
            if _is_good(connection, self._trusted_from):
                return connection
            await connection.close()
            await pool.putconn(connection)
        self._waiting += 1
        try:
            for _ in range(self._max_size):
                connection = await pool.getconn()
                if _is_good(connection, self._trusted_from):
                    return connection
                await connection.close()
                await pool.putconn(connection)
            return await pool.getconn()
        except PoolClosed:
            raise QueueClosed from None
        except PoolTimeout:
            await self._probe()
            raise
        finally:
            self._waiting -= 1

    async def give_back(self, connection: AsyncSession) -> None:
        if self._pool is None:  # closed meanwhile
            await connection.close()
        elif self._waiting or len(self._at_hand) >= AT_HAND or not _may_stay(connection):
            await self._pool.putconn(connection)
        else:
            self._at_hand.append(connection)

    def distrust_all(self) -> None:
        """None of those opened so far is served again.

        For a server that was read-only: its sessions stay so when it takes writes again.
        """
        self._trusted_from = _renewed(self._trusted_from)

    async def close(self) -> None:
        self._is_closed = True
        pool, self._pool = self._pool, None
        while self._at_hand:
            await self._at_hand.pop().close()
        if pool is not None:
            await pool.close()

    def start_anew_in_child(self) -> None:
        if self._pool is not None:
            _LEFT_TO_THE_PARENT.append((self._pool, self._at_hand))
        is_closed = self._is_closed
        self._begin()
        self._is_closed = is_closed

    async def _opened(self) -> AsyncConnectionPool[AsyncSession]:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop, self._lock = loop, asyncio.Lock()
        if self._loop is not loop or self._lock is None:
            raise QueueClosed("this AsyncJobQueue belongs to another event loop; make one per loop")
        if self._pool is not None:
            return self._pool
        async with self._lock:
            if self._is_closed:
                raise QueueClosed
            if self._pool is None:
                await self._look_once()
                pool = AsyncConnectionPool(
                    self._target.conninfo,
                    connection_class=AsyncSession,
                    kwargs=self._target.arguments,
                    min_size=0,
                    max_size=self._max_size,
                    timeout=self._target.timeout,
                    reconnect_timeout=RECONNECT_TIMEOUT,
                    configure=_furnish_async,
                    open=False,
                    name=self._target.application_name,
                )
                await pool.open()
                self._pool = pool
            return self._pool

    async def _look_once(self) -> None:
        async with await BoundedAsyncConnection.connect(self._target.conninfo, **self._target.arguments) as connection:
            try:
                await check_schema_async(connection, self._target.schema)
            except MissingRights:
                return
            except SchemaMissing as missing:
                for schema in USUAL_SCHEMAS:
                    if await _has_tables_async(connection, schema):
                        raise SchemaMissing(missing.schema, elsewhere=schema) from None
                raise

    async def _probe(self) -> None:
        connection = await BoundedAsyncConnection.connect(self._target.conninfo, **self._target.arguments)
        await connection.close()


_ALIVE: weakref.WeakSet[Connections | AsyncConnections] = weakref.WeakSet()
_LEFT_TO_THE_PARENT: list[object] = []


def _start_anew_in_child() -> None:
    for connections in list(_ALIVE):
        connections.start_anew_in_child()


os.register_at_fork(after_in_child=_start_anew_in_child)


def _furnish(connection: PlainSession) -> None:
    set_json_loads(decode_any, connection)
    connection.wire, connection.born_at = Wire(connection), time.monotonic()


async def _furnish_async(connection: AsyncSession) -> None:
    set_json_loads(decode_any, connection)
    connection.wire, connection.born_at = Wire(connection), time.monotonic()


def _renewed(trusted_from: float) -> float:
    now = time.monotonic()
    return now if now - trusted_from >= DISTRUST_EVERY else trusted_from


def _is_good(connection: PlainSession | AsyncSession, trusted_from: float) -> bool:
    return connection.born_at > trusted_from and not connection.wire.is_dead()


def _may_stay(connection: PlainSession | AsyncSession) -> bool:
    return connection.wire.is_idle() and time.monotonic() - connection.born_at < RENEWED_AFTER


def _has_tables(connection: SyncConnection, schema: str) -> bool:
    with contextlib.suppress(SchemaError):
        check_schema(connection, schema)
        return True
    return False


async def _has_tables_async(connection: AsyncConnectionAny, schema: str) -> bool:
    with contextlib.suppress(SchemaError):
        await check_schema_async(connection, schema)
        return True
    return False
