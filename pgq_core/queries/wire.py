"""The short way of a statement over the wire: prepared once per connection, sent by libpq's own calls, no cursor.

An enqueue or a claim is one small round trip, so what the driver does around it counts: measured with psycopg 3.3 (its
C form) a cursor costs 60 to 85 us of the caller's CPU, this way 20.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, OperationalError
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from pgq_core.bounded import BoundedConnection, NoAnswer
from pgq_core.queries.arrays import Float8Array, Int8Array, PackedArray
from pgq_core.queries.statement import Statement
from pgq_core.sql import numbered_query

T = TypeVar("T")

_CANCEL_SECONDS: Final = 5.0
"""How long a cancel request of ours may take before the connection is thrown away anyhow."""
_TEXT: Final = int(Format.TEXT)
_BINARY: Final = int(Format.BINARY)
_GOOD: Final = frozenset((ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK))
_Turns = Generator[bool, None, PGresult]
"""Yields before each wait: True to read or write, False to read."""


def _interval(span: timedelta) -> bytes:
    """ISO 8601, which the server reads under every IntervalStyle."""
    return b"P%dDT%d.%06dS" % (span.days, span.seconds, span.microseconds)


_WRITE: Final[dict[type, Callable[[Any], bytes | None]]] = {
    str: str.encode,
    Int8Array: PackedArray.packed,
    Float8Array: PackedArray.packed,
    int: lambda number: b"%d" % number,
    bool: lambda truth: b"t" if truth else b"f",
    type(None): lambda _: None,
    timedelta: _interval,
    datetime: lambda moment: moment.isoformat().encode(),
}
_READ: Final[dict[type, Callable[[bytes], Any]]] = {int: int, str: bytes.decode}


@dataclass(frozen=True, slots=True)
class _Loaders:
    """How a connection reads values, without the connection: it would otherwise be kept alive by its own wire."""

    adapters: AdaptersMap
    connection: None = None


class Wire:
    """One connection's short way. Between two statements the connection may be used in any other way, too.

    Statements have parameters of text, whole numbers, packed arrays, truth, times and NULL. They answer one column of
    whole numbers or of text, or the fields of a NamedTuple in their order.
    """

    __slots__ = ("_limit", "_load", "_pgconn", "_poll", "_prepared", "speaks_utf8")

    def __init__(self, conn: BoundedConnection | AsyncConnection[Any]) -> None:
        self._pgconn: PGconn = conn.pgconn
        self._limit: float = getattr(conn, "answer_within", 0.0)
        """Seconds; 0: who waits looks at the clock."""
        self._load = Transformer(_Loaders(conn.adapters))
        self.speaks_utf8 = self._pgconn.parameter_status(b"client_encoding") == b"UTF8"
        """Else the driver has to translate, and this way is closed."""
        self._prepared: dict[str, tuple[list[int] | None, int]] = {}
        """By name: the formats of its parameters (None: all text) and of its rows. A parameter keeps its format."""
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)

    def is_idle(self) -> bool:
        """Open, and outside a transaction."""
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def is_dead(self) -> bool:
        """An idle connection has nothing to read: what the server has sent is its farewell. No round trip."""
        return bool(self._poll.poll(0))

    def run(self, conn: BoundedConnection, statement: Statement[T], schema: str) -> list[T]:
        """On a plain connection. An interrupt cancels the statement and closes the connection; so does NoAnswer."""
        try:
            try:
                return self._once(statement, schema)
            except InvalidSqlStatementName:  # the driver has thrown all away after a rollback; nothing was done yet
                self._prepared.pop(statement.name, None)
                return self._once(statement, schema)
        except NoAnswer:
            conn.close()
            raise
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(Exception):  # it may be broken in any way
                conn.cancel_safe(timeout=_CANCEL_SECONDS)
            conn.close()
            raise

    async def run_async(self, conn: AsyncConnection[Any], statement: Statement[T], schema: str) -> list[T]:
        """On an asynchronous connection. A cancellation cancels the statement and closes the connection."""
        try:
            try:
                return await self._once_async(statement, schema)
            except InvalidSqlStatementName:
                self._prepared.pop(statement.name, None)
                return await self._once_async(statement, schema)
        except NoAnswer:
            await conn.close()
            raise
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(Exception):
                await conn.cancel_safe(timeout=_CANCEL_SECONDS)
            await conn.close()
            raise

    def _once(self, statement: Statement[T], schema: str) -> list[T]:
        if statement.name not in self._prepared:
            self._wait_for(self._preparing(statement, schema))
            self._prepared[statement.name] = _formats(statement, schema)
        return self._rows(self._wait_for(self._running(statement, schema)), statement)

    async def _once_async(self, statement: Statement[T], schema: str) -> list[T]:
        if statement.name not in self._prepared:
            await self._await(self._preparing(statement, schema))
            self._prepared[statement.name] = _formats(statement, schema)
        return self._rows(await self._await(self._running(statement, schema)), statement)

    def _preparing(self, statement: Statement[Any], schema: str) -> _Turns:
        text, _ = numbered_query(statement.name, schema)
        self._pgconn.send_prepare(_name(statement), text)
        return (yield from _answer(self._pgconn))

    def _running(self, statement: Statement[Any], schema: str) -> _Turns:
        _, names = numbered_query(statement.name, schema)
        params = statement.params
        values = [_WRITE[type(value := params[name])](value) for name in names]
        self._pgconn.send_query_prepared(_name(statement), values, *self._prepared[statement.name])
        return (yield from _answer(self._pgconn))

    def _wait_for(self, turns: _Turns) -> PGresult:
        poll, descriptor = self._poll, self._pgconn.socket
        deadline = time.monotonic() + self._limit
        try:
            while True:
                may_write = next(turns)
                if may_write:
                    poll.modify(descriptor, select.POLLIN | select.POLLOUT)
                ready = poll.poll(max(deadline - time.monotonic(), 0.0) * 1000)
                if may_write:
                    poll.modify(descriptor, select.POLLIN)
                if not ready:
                    raise NoAnswer(self._limit)
        except StopIteration as end:
            answer: PGresult = end.value
            return answer

    async def _await(self, turns: _Turns) -> PGresult:
        loop, descriptor = asyncio.get_running_loop(), self._pgconn.socket
        deadline = loop.time() + self._limit
        try:
            while True:
                may_write = next(turns)
                ready = loop.create_future()
                timer = loop.call_at(deadline, _give_up, ready, self._limit) if self._limit else None
                loop.add_reader(descriptor, _resolve, ready)
                if may_write:
                    loop.add_writer(descriptor, _resolve, ready)
                try:
                    await ready
                finally:
                    if timer is not None:
                        timer.cancel()
                    loop.remove_reader(descriptor)
                    if may_write:
                        loop.remove_writer(descriptor)
        except StopIteration as end:
            answer: PGresult = end.value
            return answer

    def _rows(self, result: PGresult, statement: Statement[T]) -> list[T]:
        count = result.ntuples
        if count == 0:
            return []
        row: Any = statement.row or str  # a NamedTuple class has no type of its own
        if count == 1 and row in _READ:
            return [_READ[row](result.get_value(0, 0) or b"")]
        make = itemgetter(0) if row in _READ else partial(tuple.__new__, row)
        load = self._load
        load.set_pgresult(result)
        try:
            return load.load_rows(0, count, make)
        finally:
            load.set_pgresult(None)


_WIRES: Final[WeakKeyDictionary[AsyncConnection[Any], Wire | None]] = WeakKeyDictionary()
"""Of the connections that take `fetch_quickly`; None: the way is closed there."""


async def fetch_quickly(conn: AsyncConnection[Any], statement: Statement[T], schema: str) -> list[T]:
    """`statement.fetch_all` on the short way, or on the driver's where a pooler or an encoding is in between.

    The driver's too where `Wire` cannot write a parameter, a list for example, or make a row. Several tasks may call it
    for one connection: they wait for each other.
    """
    if conn not in _WIRES:
        wire = None if conn.prepare_threshold is None else Wire(conn)
        _WIRES[conn] = wire if wire is not None and wire.speaks_utf8 else None
    known = _WIRES[conn]
    if known is None or not _is_plain(statement):
        return await statement.fetch_all(conn)
    async with conn.lock:
        return await known.run_async(conn, statement, schema)


def _is_plain(statement: Statement[Any]) -> bool:
    readable = statement.binary or statement.row is None or statement.row in _READ
    return readable and _WRITE.keys() >= set(map(type, statement.params.values()))


def _formats(statement: Statement[Any], schema: str) -> tuple[list[int] | None, int]:
    _, names = numbered_query(statement.name, schema)
    packed = [isinstance(statement.params[name], PackedArray) for name in names]
    return [int(is_packed) for is_packed in packed] if any(packed) else None, _BINARY if statement.binary else _TEXT


def _name(statement: Statement[Any]) -> bytes:
    return b"pgq_" + statement.name.encode()


def _answer(pgconn: PGconn) -> _Turns:
    """Sends what is to be sent and reads to the end of the answer. Raises the server's error."""
    while pgconn.flush():
        yield True
        pgconn.consume_input()  # a server that waits to be read from does not read either
    answer: PGresult | None = None
    while True:
        while pgconn.is_busy():
            yield False
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            break
        # The rows come before the commit: when that fails, its error is a result of its own, behind them.
        if answer is None or result.status not in _GOOD:
            answer = result
    tell = pgconn.notify_handler
    while tell is not None and (notify := pgconn.notifies()):  # or nobody would hear of it before the next byte comes
        tell(notify)
    if answer is None:
        raise OperationalError("the connection was lost")
    if answer.status not in _GOOD:
        raise error_from_result(answer, encoding="utf-8")
    return answer


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _give_up(ready: asyncio.Future[None], limit: float) -> None:
    if not ready.done():
        ready.set_exception(NoAnswer(limit))
