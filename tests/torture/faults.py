"""Fault switches. Each is a context that injects while it is open and counts what it did."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

OURS = "datname = current_database() AND application_name LIKE 'pgq%' AND pid <> pg_backend_pid()"
SEVER_ALL = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
SEVER_ONE = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS} ORDER BY random() LIMIT 1"


@dataclass
class Injected:
    """What a switch has done so far; an error of its own is raised where it was opened."""

    times: list[float] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def count(self) -> int:
        return len(self.times)


@contextlib.contextmanager
def repeatedly(interval: float, action: Callable[[], object]) -> Iterator[Injected]:
    """`action` every `interval` seconds, on time, in a thread; an answer of False is not counted."""
    injected, is_over = Injected(), threading.Event()

    def inject() -> None:
        due = time.monotonic()
        while not is_over.wait(max(due - time.monotonic(), 0.0)):
            due += interval
            try:
                if action() is not False:
                    injected.times.append(time.time())
            except BaseException as error:  # noqa: BLE001 - handed over to the test
                injected.error = error
                return

    thread = threading.Thread(target=inject, name="fault", daemon=True)
    thread.start()
    try:
        yield injected
    finally:
        is_over.set()
        thread.join(30)
    if injected.error is not None:
        raise injected.error


def sever_one(conn: psycopg.Connection[Any]) -> bool:
    """Ends one session of ours, whichever."""
    return bool(conn.execute(SEVER_ONE).fetchall())


@contextlib.contextmanager
def open_transaction(dsn: str, *statements: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A session that holds a snapshot, and the locks of its statements, for as long as the context is open."""
    with psycopg.connect(dsn, application_name="somebody else", row_factory=dict_row) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("CREATE TEMPORARY TABLE held (id int)")  # so that it has a transaction id, too
        for statement in statements or ("SELECT count(*) FROM jobs",):
            conn.execute(statement)
        yield conn
        conn.rollback()


@contextlib.contextmanager
def connections_taken(dsn: str, conn: psycopg.Connection[Any], count: int) -> Iterator[None]:
    """Others hold so many connections. Ours are ended first, since they were there before."""
    with contextlib.ExitStack() as stack:
        conn.execute(SEVER_ALL)
        taken, deadline = 0, time.monotonic() + 30.0
        while taken < count:
            try:
                stack.enter_context(psycopg.connect(dsn, autocommit=True, application_name="somebody else"))
                taken += 1
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, f"only {taken} connections could be had"
                conn.execute(SEVER_ALL)
        yield


@contextlib.contextmanager
def server_settings(conn: psycopg.Connection[Any], **values: str) -> Iterator[None]:
    """Settings of the whole server, in force for sessions that run already."""
    for name, value in values.items():
        conn.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    conn.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        for name in values:
            conn.execute(f"ALTER SYSTEM RESET {name}")
        conn.execute("SELECT pg_reload_conf()")
