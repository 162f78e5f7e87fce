"""The drivers alone: psycopg by `conn=`, asyncpg by the SQL function."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest
from psycopg import AsyncConnection

from pgq_core import AsyncJobQueue, JobQueue
from tests.frameworks.conftest import stored
from tests.support.queue_database import QueueDatabase

INSERT = "INSERT INTO public.customers (email) VALUES ('a@example.org')"


def test_psycopg(queue: JobQueue, database: QueueDatabase) -> None:
    with psycopg.connect(database.dsn) as conn:
        conn.execute(INSERT)
        queue.enqueue("welcome", conn=conn)
        assert stored(database) == (0, 0)
        conn.commit()
        queue.enqueue("welcome", conn=conn)
        conn.rollback()

    assert stored(database) == (1, 1)


async def test_psycopg_asynchronously(database: QueueDatabase) -> None:
    async with AsyncJobQueue(database.dsn) as queue, await AsyncConnection.connect(database.dsn) as conn:
        await conn.execute(INSERT)
        await queue.enqueue("welcome", conn=conn)
        assert stored(database) == (0, 0)
        await conn.commit()

    assert stored(database) == (1, 1)


def test_connections_of_the_other_kind_are_refused(queue: JobQueue, database: QueueDatabase) -> None:
    async def asynchronous() -> None:
        async with await AsyncConnection.connect(database.dsn) as conn:
            with pytest.raises(TypeError, match="not a AsyncConnection"):
                queue.enqueue("welcome", conn=conn)
        async with AsyncJobQueue(database.dsn) as other:
            with psycopg.connect(database.dsn) as plain, pytest.raises(TypeError, match="not a Connection"):
                await other.enqueue("welcome", conn=plain)

    import asyncio

    asyncio.run(asynchronous())


async def test_asyncpg_enqueues_by_the_sql_function_in_its_transaction(database: QueueDatabase) -> None:
    call = "SELECT pgq_core.enqueue($1, $2::jsonb, idempotency_key => $3)"
    conn = await asyncpg.connect(database.dsn)
    try:
        async with conn.transaction():
            await conn.execute(INSERT)
            first = await conn.fetchval(call, "welcome", '{"to": "a"}', "once")
            assert stored(database) == (0, 0)
        again = await conn.fetchval(call, "welcome", '{"to": "a"}', "once")
        transaction = conn.transaction()
        await transaction.start()
        await conn.fetchval(call, "welcome", "{}", None)
        await transaction.rollback()
    finally:
        await conn.close()

    assert first == again
    assert stored(database) == (1, 1)
