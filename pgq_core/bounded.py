"""Connections that give up a server which says nothing.

The server's own statement_timeout ends a statement that takes too long. A server that is suspended, or behind a network
that swallows packets, ends nothing, and TCP does not notice either: a socket on the same machine has no such limits,
and the kernel of a suspended process goes on acknowledging. Who waits has to look at the clock.
"""

from __future__ import annotations

import time
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.abc import PQGen

T = TypeVar("T")

ANSWER_WITHIN: Final = 60.0
"""Seconds without an answer after which a connection is given up, where nobody says otherwise."""


class NoAnswer(psycopg.OperationalError):
    """A server that was asked and then said nothing. Its connection is closed."""

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"no answer within {limit:g} s: the server is suspended or overloaded, or the network swallows packets; "
            "see to it, then repeat (whether the call was carried out is not known)"
        )


class BoundedConnection(Connection[Any]):
    """Every wait for the server ends after `answer_within` seconds with NoAnswer; 0 = never."""

    answer_within: float = 0.0

    @classmethod
    def connect(  # type: ignore[override]  # the driver's keywords pass through
        cls,
        conninfo: str = "",
        *,
        answer_within: float = 0.0,
        **kwargs: Any,  # noqa: ANN401
    ) -> Self:
        connection = super().connect(conninfo, **kwargs)
        connection.answer_within = answer_within
        return connection

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401  # differ between versions of psycopg
        if not self.answer_within:
            return super().wait(gen, *args, **kwargs)
        try:
            return super().wait(_within(self.answer_within, gen), *args, **kwargs)
        except NoAnswer:
            self.pgconn.finish()
            raise


class BoundedAsyncConnection(AsyncConnection[Any]):
    """The same for asynchronous code; always with a limit."""

    answer_within: float

    @classmethod
    async def connect(  # type: ignore[override]
        cls,
        conninfo: str = "",
        *,
        answer_within: float,
        **kwargs: Any,  # noqa: ANN401
    ) -> Self:
        connection = await super().connect(conninfo, **kwargs)
        connection.answer_within = answer_within
        return connection

    async def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401
        try:
            return await super().wait(_within(self.answer_within, gen), *args, **kwargs)
        except NoAnswer:
            self.pgconn.finish()
            raise


def _within(limit: float, gen: PQGen[T]) -> PQGen[T]:
    """The driver's generator, broken off when it has waited for so long: the driver looks in ten times a second."""
    deadline = time.monotonic() + limit
    try:
        wish = next(gen)
        while True:
            ready = yield wish
            if not ready and time.monotonic() >= deadline:
                raise NoAnswer(limit)
            wish = gen.send(ready)
    except StopIteration as end:
        answer: T = end.value
        return answer
