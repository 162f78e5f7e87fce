"""Handlers that share the job's transaction: their own SQL and the job's completion are committed together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.pq import TransactionStatus

from pgq_core.database import IDLE_LIMIT, LOCK_LIMIT, connect, connect_sync, is_missing_partition
from pgq_core.errors import ClaimLost, DatabaseUnavailable
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import FinishedJob
from pgq_core.sql import schema_statement
from pgq_core.worker.attempt import Attempt, Write

Conn = TypeVar("Conn", bound=AsyncConnection[Any] | Connection[Any])

_APPLICATION: Final = "pgq job"
NO_LIMIT: Final = 0.0
"""Of silence in a handler's transaction, whatever the server's is: its job has a time limit."""
_SET_BY_HANDLERS: Final = ("row_factory", "cursor_factory", "server_cursor_factory", "prepare_threshold")
"""Attributes of a connection that a handler may set, and the next one must not meet."""


class JobTransactions:
    """Connections for transactional handlers, one per running job, kept for the next one."""

    def __init__(self, dsn: str, queries: Queries, *, worker_id: str, slot: int) -> None:
        self._dsn = dsn
        self._queries = queries
        self._worker_id = worker_id
        self._slot = slot
        self._idle: list[_Kept[AsyncConnection[Any]]] = []
        self._idle_sync: list[_Kept[Connection[Any]]] = []
        self._reset = schema_statement("reset_session", queries.schema).encode()
        self._limit_end = schema_statement(
            "limit_end",
            queries.schema,
            silence=sql.Literal(int(IDLE_LIMIT * 1000)),
            lock=sql.Literal(int(LOCK_LIMIT * 1000)),
        ).encode()

    async def run(
        self,
        call: Callable[[AsyncConnection[Any]], Awaitable[object]],
        end: Callable[[object], Write],
    ) -> Write:
        """Calls the handler and commits its work with the job's completion; any other outcome rolls it back.

        Answers the write: a FinishedJob that is committed, or another one that still has to be written. Raises
        NotOurs when the job is somebody else's by now, HandlersOwn, and what the handler raised.
        """
        async with self._connection() as conn:
            try:
                async with conn.transaction():
                    with blaming_the_handler(conn):
                        write = end(await call(conn))
                    if not isinstance(write, FinishedJob):
                        raise _RolledBack(write)
                    await conn.execute(self._limit_end)
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
                    with blaming_the_handler(conn):
                        write = end(call(conn))
                    # Whoever settled the attempt meanwhile (its time limit) wrote another outcome.
                    if not isinstance(write, FinishedJob) or attempt.is_settled:
                        raise _RolledBack(write)
                    conn.execute(self._limit_end)
                    self._finish_sync(conn, write)
            except _RolledBack as rolled_back:
                return rolled_back.write
        return write

    async def close(self) -> None:
        for kept in self._idle:
            await kept.conn.close()
        for plain in self._idle_sync:
            plain.conn.close()

    async def _finish(self, conn: AsyncConnection[Any], write: FinishedJob) -> None:
        try:
            ours = await self._statement(write).fetch_all(conn)
        except psycopg.errors.CheckViolation as error:
            if not is_missing_partition(error):
                raise
            raise NoPartition from error
        except psycopg.errors.LockNotAvailable as error:
            raise RowLocked(write.id) from error
        if not ours:
            raise NotOurs(write.id)

    def _finish_sync(self, conn: Connection[Any], write: FinishedJob) -> None:
        try:
            ours = self._statement(write).fetch_all_sync(conn)
        except psycopg.errors.CheckViolation as error:
            if not is_missing_partition(error):
                raise
            raise NoPartition from error
        except psycopg.errors.LockNotAvailable as error:
            raise RowLocked(write.id) from error
        if not ours:
            raise NotOurs(write.id)

    def _statement(self, write: FinishedJob) -> Statement[int]:
        return self._queries.finish_jobs([write], worker_id=self._worker_id, slot=self._slot)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        kept = await self._opened()
        try:
            yield kept.conn
        except BaseException:
            # Whatever a failed handler did to its session goes with it.
            await kept.conn.close()
            raise
        if kept.can_be_reset():
            self._idle.append(kept)
        else:
            await kept.conn.close()

    async def _opened(self) -> _Kept[AsyncConnection[Any]]:
        while self._idle:
            kept = self._idle.pop()
            with contextlib.suppress(psycopg.Error):
                kept.reset_attributes()
                await kept.conn.execute(self._reset)
                return kept
            await kept.conn.close()
        return _Kept(await connect(self._dsn, application_name=_APPLICATION, idle_limit=NO_LIMIT))

    @contextlib.contextmanager
    def _connection_sync(self) -> Iterator[Connection[Any]]:
        kept = self._opened_sync()
        try:
            yield kept.conn
        except BaseException:
            kept.conn.close()
            raise
        if kept.can_be_reset():
            self._idle_sync.append(kept)
        else:
            kept.conn.close()

    def _opened_sync(self) -> _Kept[Connection[Any]]:
        # Several threads take from the list: pop and append are one step each.
        with contextlib.suppress(IndexError):
            while True:
                kept = self._idle_sync.pop()
                with contextlib.suppress(psycopg.Error):
                    kept.reset_attributes()
                    kept.conn.execute(self._reset)
                    return kept
                kept.conn.close()
        # No limit of ours: a handler's own statements may take as long as its job may.
        return _Kept(connect_sync(self._dsn, application_name=_APPLICATION, idle_limit=NO_LIMIT, answer_within=0))


class _Kept(Generic[Conn]):
    """A connection of ours, and how it was when it was opened."""

    def __init__(self, conn: Conn) -> None:
        self.conn = conn
        self._attributes = {name: getattr(conn, name) for name in _SET_BY_HANDLERS}

    def can_be_reset(self) -> bool:
        """Not where its next transaction would begin in another way: that is easier opened anew."""
        conn = self.conn
        is_plain = (conn.isolation_level, conn.read_only, conn.deferrable) == (None, None, None)
        return not conn.closed and conn.autocommit and is_plain

    def reset_attributes(self) -> None:
        for name, value in self._attributes.items():
            setattr(self.conn, name, value)


@contextlib.contextmanager
def blaming_the_handler(conn: AsyncConnection[Any] | Connection[Any]) -> Iterator[None]:
    """Raises HandlersOwn for what looks like trouble of the database and is the handler's doing.

    That is another database's trouble while ours is sound, a connection that the handler closed, and a transaction that
    it ended by a statement of its own: what it wrote would not share the fate of its job.
    """
    try:
        yield
    except Exception as error:
        if is_infrastructure(error) and (_is_open(conn) or (conn.closed and not conn.broken)):
            raise HandlersOwn(error) from error
        raise
    if conn.closed and not conn.broken:
        raise HandlersOwn(RuntimeError("the handler closed the connection of the job's transaction"))
    if conn.info.transaction_status == TransactionStatus.IDLE:
        raise HandlersOwn(
            RuntimeError(
                "the handler ended the job's transaction by a statement of its own (COMMIT, ROLLBACK or PREPARE "
                "TRANSACTION): what it wrote is not tied to the job; nest `with conn.transaction():` instead"
            )
        )


def _is_open(conn: AsyncConnection[Any] | Connection[Any]) -> bool:
    return not conn.closed and conn.info.transaction_status == TransactionStatus.INTRANS


class HandlersOwn(Exception):
    """Trouble that the handler is to blame for, whatever its class says."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


def is_infrastructure(error: BaseException) -> bool:
    """Whether the database went away under a handler: lost connection, shutdown, read-only after a failover, no room.

    A statement that the handler itself made fail (a conflict, its own time limit) is the handler's affair.
    """
    if isinstance(error, (DatabaseUnavailable, NoPartition, RowLocked)):
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


class RowLocked(Exception):
    """Somebody else's transaction holds the job's row: its work is undone, and it is tried again, unspent."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"the row of job {job_id} is locked by another transaction: pgq-core doctor names its holder")


class _RolledBack(Exception):
    """The handler asked for another outcome than a finish: its work is undone first."""

    def __init__(self, write: Write) -> None:
        self.write = write
        super().__init__()
