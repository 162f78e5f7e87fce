"""A batch of writes of which the database refuses some: the others must not wait for them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import is_missing_partition, is_transient
from pgq_core.sql import schema_statement

W = TypeVar("W")

PASSED_BY_FOR: Final = 60.0
"""Seconds until a row whose write was refused is tried again."""
MOST_PASSED_BY: Final = 1000
"""Rows that are passed by; where there are more it is no matter of single rows."""


class PassedBy:
    """Rows whose write was refused: left alone for a while, so that they do not stand in front of the others."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[int, float] = {}

    def add(self, row_id: int) -> None:
        self._until[row_id] = self._monotonic() + PASSED_BY_FOR

    def ids(self) -> list[int]:
        if self._until:
            now = self._monotonic()
            self._until = {row_id: until for row_id, until in self._until.items() if until > now}
        return list(self._until)

    def is_empty(self) -> bool:
        return not self._until

    def is_full(self) -> bool:
        return len(self._until) >= MOST_PASSED_BY


def is_refusal(error: BaseException) -> bool:
    """Whether the server refused what was asked, for a reason that another try does not remove: a constraint, a right.

    Only that says anything about single rows; trouble of the server or of the connection concerns all of them.
    """
    return isinstance(error, psycopg.Error) and error.sqlstate is not None and not is_transient(error)


@cache
def _check_at_once() -> bytes:
    return schema_statement("check_at_once", "").encode()


async def write_what_can_be(
    conn: AsyncConnection[Any],
    writes: Sequence[W],
    write: Callable[[Sequence[W]], Awaitable[None]],
    *,
    has_partitions: bool,
) -> list[tuple[W, psycopg.Error]]:
    """All at once; if that is refused, one by one. Answers those that were refused, each with the reason.

    Must be called inside a transaction, whose other work is kept. Raises what is no refusal. `has_partitions` False:
    also raises that `job_runs` has no partition for some day, since the caller may make one.
    """
    if not writes:
        return []
    await conn.execute(_check_at_once(), prepare=False)
    try:
        async with conn.transaction():
            await write(writes)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        if is_missing_partition(error) and not has_partitions:
            raise
        return await _one_by_one(conn, writes, write)
    return []


async def _one_by_one(
    conn: AsyncConnection[Any], writes: Sequence[W], write: Callable[[Sequence[W]], Awaitable[None]]
) -> list[tuple[W, psycopg.Error]]:
    refused: list[tuple[W, psycopg.Error]] = []
    for one in writes:
        try:
            async with conn.transaction():
                await write([one])
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            refused.append((one, error))
    return refused
