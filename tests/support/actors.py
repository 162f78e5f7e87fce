"""Named sessions that act on one database side by side. Who waits for whom is asked of the server, not guessed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

from pgq_core.domain.payload import decode_any
from pgq_core.queries import Queries
from tests.conftest import SCHEMA
from tests.support.waiting import eventually

T = TypeVar("T")
Session = psycopg.Connection[dict[str, Any]]

PATIENCE = 60.0


class Actor:
    """One session with a thread of its own, so that a statement of it can wait while others act."""

    def __init__(self, name: str, dsn: str, queries: Queries | None = None) -> None:
        self.name = name
        self.queries = queries or Queries(SCHEMA)
        self.conn: Session = psycopg.connect(dsn, autocommit=True, row_factory=dict_row, application_name=name)
        set_json_loads(decode_any, self.conn)
        self.conn.execute(f"SET search_path = {SCHEMA}")
        # A script that goes wrong ends with an error instead of hanging.
        self.conn.execute("SET lock_timeout = '120s'")
        self.pid = self.conn.info.backend_pid
        self.tokens: dict[int, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"actor-{name}")
        self._pending: Future[Any] | None = None

    def act(self, call: Callable[[Actor], T]) -> T:
        """Does it and waits for the end of it."""
        self.start(call)
        return self.end()  # type: ignore[no-any-return]  # the call's own answer

    def start(self, call: Callable[[Actor], object]) -> None:
        assert self._pending is None, f"{self.name} is still waiting"
        self._pending = self._thread.submit(call, self)

    def is_done(self) -> bool:
        return self._pending is None or self._pending.done()

    def end(self) -> Any:
        """The answer of what was started; raises what it raised."""
        pending, self._pending = self._pending, None
        assert pending is not None, f"{self.name} does nothing"
        return pending.result(PATIENCE)

    def close(self) -> None:
        if self._pending is not None and not self._pending.done():
            with contextlib.suppress(psycopg.Error):
                self.conn.cancel_safe(timeout=5)
            with contextlib.suppress(Exception):
                self._pending.result(PATIENCE)
        self._thread.shutdown(wait=True)
        self.conn.close()


class Cast:
    """The actors of one play, and an observer who sees which of them wait for a lock."""

    def __init__(self, dsn: str, queries: Queries | None = None) -> None:
        self._dsn = dsn
        self._queries = queries
        self._actors: dict[str, Actor] = {}
        self.observer = psycopg.connect(dsn, autocommit=True, row_factory=dict_row)
        self.observer.execute(f"SET search_path = {SCHEMA}")

    def __getitem__(self, name: str) -> Actor:
        if name not in self._actors:
            self._actors[name] = Actor(name, self._dsn, self._queries)
        return self._actors[name]

    def wait_until_blocked(self, actor: Actor) -> None:
        """Until another actor's lock holds it up; fails when it came to an end instead."""
        others = [other.pid for other in self._actors.values() if other is not actor]
        eventually(lambda: actor.is_done() or self._is_blocked(actor, others), PATIENCE)
        assert not actor.is_done(), f"{actor.name} was to wait, but answered {_answer(actor)}"

    def _is_blocked(self, actor: Actor, others: list[int]) -> bool:
        row = self.observer.execute("SELECT pg_blocking_pids(%s) && %s::int[] AS waits", (actor.pid, others)).fetchone()
        return bool(row and row["waits"])

    def close(self) -> None:
        # First those who do not wait: what they hold is what the others wait for.
        for actor in sorted(self._actors.values(), key=lambda one: not one.is_done()):
            actor.close()
        self.observer.close()


@contextlib.contextmanager
def cast_on(dsn: str, queries: Queries | None = None) -> Iterator[Cast]:
    cast = Cast(dsn, queries)
    try:
        yield cast
    finally:
        cast.close()


def _answer(actor: Actor) -> object:
    try:
        return actor.end()
    except Exception as error:  # noqa: BLE001 - shown in a failing test
        return repr(error)
