"""A batch of writes of which the database refuses some: the others must not wait for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import is_transient

W = TypeVar("W")


def is_refusal(error: BaseException) -> bool:
    """Whether the server refused what was asked, for a reason that another try does not remove: a constraint, a right.

    Only that says anything about single rows; trouble of the server or of the connection concerns all of them.
    """
    return isinstance(error, psycopg.Error) and error.sqlstate is not None and not is_transient(error)


async def write_what_can_be(
    conn: AsyncConnection[Any],
    writes: Sequence[W],
    write: Callable[[Sequence[W]], Awaitable[None]],
    *,
    has_partitions: bool,
) -> list[tuple[W, psycopg.Error]]:
    """All at once; if that is refused, one by one. Answers those that were refused, each with the reason.

    Must be called inside a transaction, whose other work is kept. Raises what is no refusal. `has_partitions` False: a
    CheckViolation is raised too, since it may only mean that `job_runs` has no partition for some day yet.
    """
    if not writes:
        return []
    try:
        async with conn.transaction():
            await write(writes)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        if isinstance(error, psycopg.errors.CheckViolation) and not has_partitions:
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
