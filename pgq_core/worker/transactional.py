"""Handlers that share the job's transaction: their own SQL and the job's completion are committed together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from pgq_core.database import connect, connect_sync
from pgq_core.errors import ClaimLost, DatabaseUnavailable
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import FinishedJob
from pgq_core.worker.attempt import Attempt, Write

_APPLICATION: Final = "pgq job"
_TRUSTED_FOR: Final = 1.0
"""Seconds of rest after which a kept connection has to answer before a handler gets it."""


class JobTransactions:
    """Connections for transactional handlers, one per running job, kept for the next one."""

    def __init__(self, dsn: str, queries: Queries, *, worker_id: str, slot: int) -> None:
        self._dsn = dsn
        self._queries = queries
        self._worker_id = worker_id
        self._slot = slot
        self._idle: list[tuple[float, AsyncConnection[Any]]] = []
        self._idle_sync: list[tuple[float, Connection[Any]]] = []

    async def run(
        self,
        call: Callable[[AsyncConnection[Any]], Awaitable[object]],
        end: Callable[[object], Write],
    ) -> Write:
        """Calls the handler and commits its work with the job's completion; any other outcome rolls it back.

        Answers the write: a FinishedJob that is committed, or another one that still has to be written. Raises
        ClaimLost when the job is no longer ours, and what the handler raised.
        """
        async with self._connection() as conn:
            try:
                async with conn.transaction():
                    try:
                        write = end(await call(conn))
                    except BaseException as error:
                        raise_if_own(error, conn)
                        raise
                    if not isinstance(write, FinishedJob):
                        raise _RolledBack(write)
                    await self._finish(conn, write)
            except _RolledBack as rolled_back:
                return rolled_back.write
        return write

    def run_sync(
        self, attempt: Attempt, call: Callable[[Connection[Any]], object], end: Callable[[object], Write]
    ) -> Write:
        """The same for a plain function, in its thread."""
        with self._connection_sync() as conn:
            try:
                with conn.transaction():
                    try:
                        write = end(call(conn))
                    except BaseException as error:
                        raise_if_own(error, conn)
                        raise
                    # Whoever settled the attempt meanwhile (its time limit) wrote another outcome.
                    if not isinstance(write, FinishedJob) or attempt.is_settled:
                        raise _RolledBack(write)
                    self._finish_sync(conn, write)
            except _RolledBack as rolled_back:
                return rolled_back.write
        return write

    async def close(self) -> None:
        for _, conn in self._idle:
            await conn.close()
        for _, plain in self._idle_sync:
            plain.close()

    async def _finish(self, conn: AsyncConnection[Any], write: FinishedJob) -> None:
        try:
            ours = await self._statement(write).fetch_all(conn)
        except psycopg.errors.CheckViolation as error:
            raise NoPartition from error
        if not ours:
            raise NotOurs(write.id)

    def _finish_sync(self, conn: Connection[Any], write: FinishedJob) -> None:
        try:
            ours = self._statement(write).fetch_all_sync(conn)
        except psycopg.errors.CheckViolation as error:
            raise NoPartition from error
        if not ours:
            raise NotOurs(write.id)

    def _statement(self, write: FinishedJob) -> Statement[int]:
        return self._queries.finish_jobs([write], worker_id=self._worker_id, slot=self._slot)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        conn = await self._opened()
        try:
            yield conn
        except BaseException:
            # Whatever a failed handler did to its session goes with it.
            await conn.close()
            raise
        if not conn.closed:
            self._idle.append((time.monotonic(), conn))

    async def _opened(self) -> AsyncConnection[Any]:
        while self._idle:
            since, conn = self._idle.pop()
            with contextlib.suppress(psycopg.Error):
                if time.monotonic() - since > _TRUSTED_FOR:
                    await self._queries.wake_channel().fetch_one(conn)
                return conn
            await conn.close()
        return await connect(self._dsn, application_name=_APPLICATION)

    @contextlib.contextmanager
    def _connection_sync(self) -> Iterator[Connection[Any]]:
        conn = self._opened_sync()
        try:
            yield conn
        except BaseException:
            conn.close()
            raise
        if not conn.closed:
            self._idle_sync.append((time.monotonic(), conn))

    def _opened_sync(self) -> Connection[Any]:
        # Several threads take from the list: pop and append are one step each.
        with contextlib.suppress(IndexError):
            while True:
                since, conn = self._idle_sync.pop()
                with contextlib.suppress(psycopg.Error):
                    if time.monotonic() - since > _TRUSTED_FOR:
                        self._queries.wake_channel().fetch_one_sync(conn)
                    return conn
                conn.close()
        # No limit of ours: a handler's own statements may take as long as its job may.
        return connect_sync(self._dsn, application_name=_APPLICATION, answer_within=0)


def raise_if_own(error: BaseException, conn: AsyncConnection[Any] | Connection[Any]) -> None:
    """Raises HandlersOwn where another database failed, or where the handler closed the connection it was given."""
    is_sound = not conn.closed and conn.info.transaction_status == TransactionStatus.INTRANS
    if is_infrastructure(error) and is_sound:
        raise HandlersOwn(error) from error


class HandlersOwn(Exception):
    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(str(error))


def is_infrastructure(error: BaseException) -> bool:
    """Whether the database went away under a handler: lost connection, shutdown, read-only after a failover, no room.

    A statement that the handler itself made fail (a conflict, its own time limit) is the handler's affair.
    """
    if isinstance(error, (DatabaseUnavailable, NoPartition)):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError) and not isinstance(error, psycopg.errors.QueryCanceled)
    return error.sqlstate.startswith(("08", "53", "57P")) or error.sqlstate == "25006"


class NotOurs(ClaimLost):
    """Ours about this very job. A handler may raise ClaimLost too, about a job that it claimed by itself."""


class NoPartition(Exception):
    """`job_runs` has no place for the day on which a run started; the completer makes one."""

    def __init__(self) -> None:
        super().__init__("no partition of job_runs for the day this run started")


class _RolledBack(Exception):
    """The handler asked for another outcome than a finish: its work is undone first."""

    def __init__(self, write: Write) -> None:
        self.write = write
        super().__init__()
