"""Sessions of people and programs that know only SQL."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import dict_row

from tests.support.waiting import TIMEOUT, eventually

T = TypeVar("T")
Row = dict[str, Any]
Session = Connection[Row]


@contextlib.contextmanager
def session(dsn: str, *, autocommit: bool = True, options: str = "-c timezone=UTC") -> Iterator[Session]:
    """A connection whose rows are dicts. `autocommit` False: one transaction, rolled back unless committed."""
    with psycopg.connect(dsn, autocommit=autocommit, row_factory=dict_row, options=options) as conn:
        yield conn
        if not autocommit:
            conn.rollback()


def rows(conn: Session, query: str, *params: object) -> list[Row]:
    return conn.execute(query, params or None).fetchall()


def row(conn: Session, query: str, *params: object) -> Row:
    found = rows(conn, query, *params)
    assert len(found) == 1, found
    return found[0]


def value(conn: Session, query: str, *params: object) -> Any:
    (found,) = row(conn, query, *params).values()
    return found


class InBackground(Generic[T]):
    """A call in a thread of its own, for statements that have to wait for another session."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._answer: T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> T:
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive(), "the background call has not ended"
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except BaseException as error:  # noqa: BLE001  # handed to the thread that asks for the result
            self._error = error


def wait_until_blocked(observer: Session, waiting: Session) -> None:
    """Until the statement of `waiting` stands at a lock."""
    pid = waiting.info.backend_pid
    eventually(lambda: value(observer, "SELECT cardinality(pg_blocking_pids(%s))", pid) > 0)
