"""The connections of a queue: a pool opened at its first use, whose connections have not died in the meantime."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, Connection
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from pgq_core.database import conninfo
from pgq_core.domain.payload import decode_any
from pgq_core.errors import MissingRights, QueueClosed, SchemaError, SchemaMissing
from pgq_core.migrate import check_schema, check_schema_async

RECONNECT_TIMEOUT: Final = 10.0
"""Seconds a pool tries on its own for a lost connection; after that the next caller makes it try again."""
OTHER_SCHEMA: Final = "public"
SyncConnection: TypeAlias = Connection[Any]
AsyncConnectionAny: TypeAlias = AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect and how. `prepare` False: behind a pooler in transaction mode, so no session state."""

    dsn: str
    schema: str
    application_name: str
    prepare: bool
    timeout: float

    @property
    def conninfo(self) -> str:
        return conninfo(
            self.dsn,
            application_name=self.application_name,
            statement_timeout=self.timeout,
            pinned_plans=True,
            is_pooled=not self.prepare,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        # Statements ask for preparation themselves; without a threshold the driver never prepares.
        return {"autocommit": True, "prepare_threshold": 5 if self.prepare else None}


class Connections:
    """For the plain queue; usable from many threads, and again in a forked child, which gets connections of its own."""

    def __init__(self, target: Target, *, max_size: int) -> None:
        self._target = target
        self._max_size = max_size
        self._begin()
        _ALIVE.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._pool: ConnectionPool[SyncConnection] | None = None
        self._is_closed = False

    def take(self) -> SyncConnection:
        """Waits for a free one, bounded by the queue's timeout."""
        pool = self._pool or self._opened()
        try:
            for _ in range(self._max_size):
                connection = pool.getconn()
                if not _is_dead(connection):
                    return connection
                connection.close()  # so that the pool replaces it
                pool.putconn(connection)
            return pool.getconn()
        except PoolTimeout:
            self._probe()  # says why, when the server is the reason
            raise

    def give_back(self, connection: SyncConnection) -> None:
        if self._pool is None:  # closed meanwhile
            connection.close()
        else:
            self._pool.putconn(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def start_anew_in_child(self) -> None:
        """The parent's sockets and locks are not ours. Nothing is closed: that would end the parent's sessions."""
        if self._pool is not None:
            _LEFT_TO_THE_PARENT.append(self._pool)
        is_closed = self._is_closed
        self._begin()
        self._is_closed = is_closed

    def _opened(self) -> ConnectionPool[SyncConnection]:
        with self._lock:
            if self._is_closed:
                raise QueueClosed
            if self._pool is None:
                self._look_once()
                pool = ConnectionPool(
                    self._target.conninfo,
                    kwargs=self._target.arguments,
                    min_size=0,
                    max_size=self._max_size,
                    timeout=self._target.timeout,
                    reconnect_timeout=RECONNECT_TIMEOUT,
                    configure=_read_any_json,
                    open=False,
                    name=self._target.application_name,
                )
                pool.open()
                self._pool = pool
            return self._pool

    def _look_once(self) -> None:
        """Neither a wrong password nor a missing schema shall be a matter of waiting."""
        with Connection.connect(self._target.conninfo, **self._target.arguments) as connection:
            try:
                check_schema(connection, self._target.schema)
            except MissingRights:
                return  # who may only insert may do that
            except SchemaMissing as missing:
                if _has_tables(connection, OTHER_SCHEMA):
                    raise SchemaMissing(missing.schema, elsewhere=OTHER_SCHEMA) from None
                raise

    def _probe(self) -> None:
        Connection.connect(self._target.conninfo, **self._target.arguments).close()


class AsyncConnections:
    """For the asynchronous queue; belongs to the event loop that used it first."""

    def __init__(self, target: Target, *, max_size: int) -> None:
        self._target = target
        self._max_size = max_size
        self._begin()
        _ALIVE.add(self)

    def _begin(self) -> None:
        self._pool: AsyncConnectionPool[AsyncConnectionAny] | None = None
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def take(self) -> AsyncConnectionAny:
        """Waits for a free one, bounded by the queue's timeout."""
        pool = await self._opened()
        try:
            for _ in range(self._max_size):
                connection = await pool.getconn()
                if not _is_dead(connection):
                    return connection
                await connection.close()
                await pool.putconn(connection)
            return await pool.getconn()
        except PoolTimeout:
            await self._probe()
            raise

    async def give_back(self, connection: AsyncConnectionAny) -> None:
        if self._pool is None:  # closed meanwhile
            await connection.close()
        else:
            await self._pool.putconn(connection)

    async def close(self) -> None:
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    def start_anew_in_child(self) -> None:
        if self._pool is not None:
            _LEFT_TO_THE_PARENT.append(self._pool)
        is_closed = self._is_closed
        self._begin()
        self._is_closed = is_closed

    async def _opened(self) -> AsyncConnectionPool[AsyncConnectionAny]:
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
                    kwargs=self._target.arguments,
                    min_size=0,
                    max_size=self._max_size,
                    timeout=self._target.timeout,
                    reconnect_timeout=RECONNECT_TIMEOUT,
                    configure=_read_any_json_async,
                    open=False,
                    name=self._target.application_name,
                )
                await pool.open()
                self._pool = pool
            return self._pool

    async def _look_once(self) -> None:
        async with await AsyncConnection.connect(self._target.conninfo, **self._target.arguments) as connection:
            try:
                await check_schema_async(connection, self._target.schema)
            except MissingRights:
                return
            except SchemaMissing as missing:
                if await _has_tables_async(connection, OTHER_SCHEMA):
                    raise SchemaMissing(missing.schema, elsewhere=OTHER_SCHEMA) from None
                raise

    async def _probe(self) -> None:
        connection = await AsyncConnection.connect(self._target.conninfo, **self._target.arguments)
        await connection.close()


_ALIVE: weakref.WeakSet[Connections | AsyncConnections] = weakref.WeakSet()
_LEFT_TO_THE_PARENT: list[object] = []


def _start_anew_in_child() -> None:
    for connections in list(_ALIVE):
        connections.start_anew_in_child()


os.register_at_fork(after_in_child=_start_anew_in_child)


def _read_any_json(connection: SyncConnection) -> None:
    set_json_loads(decode_any, connection)


async def _read_any_json_async(connection: AsyncConnectionAny) -> None:
    set_json_loads(decode_any, connection)


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


def _is_dead(connection: SyncConnection | AsyncConnectionAny) -> bool:
    """An idle connection has nothing to read: what the server has sent is its farewell. No round trip.

    The pool's own check would sleep for a second before it looks at the next connection.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
