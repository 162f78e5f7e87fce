"""One question to the database, on a connection of its own, answered within a bounded time."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import psycopg

from pgq_core.database import connect, translated
from pgq_core.errors import DatabaseUnavailable
from pgq_core.queries import Statement

T = TypeVar("T")

ANSWER_WITHIN: Final = 10.0


async def answer_to(dsn: str, question: Statement[T]) -> T | None:
    """The first row, if there is any. Raises DatabaseUnavailable, also when the server says nothing."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            conn = await connect(dsn, application_name="pgq find supervisor", statement_timeout=ANSWER_WITHIN / 2)
            async with conn:
                return await question.fetch_one(conn)
    except TimeoutError as error:
        raise DatabaseUnavailable(f"no answer within {ANSWER_WITHIN:g} s") from error
    except psycopg.Error as error:
        raise translated(error) from error
