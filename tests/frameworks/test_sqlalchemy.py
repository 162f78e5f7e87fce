"""An enqueue joins the transaction of a SQLAlchemy connection or session, plain and asynchronous."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from pgq_core import AsyncJobQueue, JobQueue, KeyConflict
from tests.frameworks.conftest import stored
from tests.support.queue_database import QueueDatabase

INSERT = text("INSERT INTO public.customers (email) VALUES ('a@example.org')")


@pytest.fixture
def engine(database: QueueDatabase) -> Iterator[Engine]:
    engine = create_engine(make_url(database.dsn).set(drivername="postgresql+psycopg"))
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(database: QueueDatabase) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(make_url(database.dsn).set(drivername="postgresql+psycopg"))
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("first", ["row", "job"])
def test_a_session_commits_row_and_job_together(
    engine: Engine, queue: JobQueue, database: QueueDatabase, first: str
) -> None:
    with Session(engine) as session:
        if first == "row":
            session.execute(INSERT)
        queue.enqueue("welcome", {"to": "a"}, idempotency_key="once", conn=session)
        if first == "job":
            session.execute(INSERT)
        assert stored(database) == (0, 0)
        session.commit()

    assert stored(database) == (1, 1)


def test_a_session_rolls_row_and_job_back_together(engine: Engine, queue: JobQueue, database: QueueDatabase) -> None:
    with Session(engine) as session:
        queue.enqueue("welcome", conn=session)
        session.execute(INSERT)
        session.rollback()
    with Session(engine) as session, session.begin():
        session.execute(INSERT)
        with session.begin_nested() as savepoint:
            queue.enqueue("welcome", conn=session)
            savepoint.rollback()

    assert stored(database) == (1, 0)


@pytest.mark.parametrize("options", [{}, {"isolation_level": "AUTOCOMMIT"}])
def test_a_connection_that_does_nothing_else_commits_its_job(
    engine: Engine, queue: JobQueue, database: QueueDatabase, options: dict[str, str]
) -> None:
    with engine.connect().execution_options(**options) as conn:
        queue.enqueue("welcome", conn=conn)
        conn.commit()
    with engine.begin() as conn:
        queue.enqueue_many([("welcome", {}), ("welcome", {})], conn=conn)

    assert stored(database) == (0, 3)


def test_a_connection_that_is_closed_without_commit_leaves_nothing(
    engine: Engine, queue: JobQueue, database: QueueDatabase
) -> None:
    with engine.connect() as conn:
        queue.enqueue("welcome", conn=conn)

    assert stored(database) == (0, 0)


def test_a_scoped_session_and_the_raw_driver_connection_work_too(
    engine: Engine, queue: JobQueue, database: QueueDatabase
) -> None:
    scoped = scoped_session(sessionmaker(engine))
    queue.enqueue("welcome", conn=scoped)
    scoped.commit()
    scoped.remove()
    with engine.begin() as conn:
        queue.enqueue("welcome", conn=conn.connection.driver_connection)
        conn.execute(INSERT)

    assert stored(database) == (1, 2)


def test_a_refused_key_leaves_the_transaction_usable(engine: Engine, queue: JobQueue, database: QueueDatabase) -> None:
    queue.enqueue("welcome", {"to": "a"}, idempotency_key="once")

    with Session(engine) as session, session.begin():
        with pytest.raises(KeyConflict):
            queue.enqueue("welcome", {"to": "b"}, idempotency_key="once", conn=session)
        session.execute(INSERT)

    assert stored(database) == (1, 1)


async def test_an_async_session_commits_and_rolls_back_row_and_job_together(
    async_engine: AsyncEngine, database: QueueDatabase
) -> None:
    async with AsyncJobQueue(database.dsn) as queue:
        async with AsyncSession(async_engine) as session:
            await queue.enqueue("welcome", idempotency_key="once", conn=session)
            await session.execute(INSERT)
            assert stored(database) == (0, 0)
            await session.commit()
        async with AsyncSession(async_engine) as session:
            await session.execute(INSERT)
            await queue.enqueue("welcome", conn=session)
            await session.rollback()

    assert stored(database) == (1, 1)


async def test_an_async_connection_commits_its_job(async_engine: AsyncEngine, database: QueueDatabase) -> None:
    async with AsyncJobQueue(database.dsn) as queue:
        async with async_engine.connect() as conn:
            await queue.enqueue("welcome", conn=conn)
            await conn.commit()
        async with async_engine.begin() as conn:
            await queue.enqueue_many([("welcome", {})], conn=conn)
            raw = await conn.get_raw_connection()
            await queue.enqueue("welcome", conn=raw.driver_connection)

    assert stored(database) == (0, 3)


async def test_over_asyncpg_the_sql_function_joins_the_transaction(database: QueueDatabase) -> None:
    engine = create_async_engine(make_url(database.dsn).set(drivername="postgresql+asyncpg"))
    call = text("SELECT pgq_core.enqueue(:type, CAST(:data AS jsonb), queue => :queue)")
    async with AsyncJobQueue(database.dsn) as queue, AsyncSession(engine) as session:
        with pytest.raises(TypeError, match=r"over a asyncpg.connection.Connection.*SQL function enqueue"):
            await queue.enqueue("welcome", conn=session)
        await session.execute(INSERT)
        job_id = await session.scalar(call, {"type": "welcome", "data": '{"to": "a"}', "queue": "mail"})
        assert stored(database) == (0, 0)
        await session.commit()
    await engine.dispose()

    assert stored(database) == (1, 1)
    job = database.job(job_id or 0)
    assert job is not None
    assert (job["job_type"], job["queue"], job["payload"]["data"]) == ("welcome", "mail", {"to": "a"})


@pytest.mark.parametrize("given", ["text", 1, object()])
async def test_what_is_no_connection_is_refused_before_anything_is_sent(database: QueueDatabase, given: Any) -> None:
    with JobQueue(database.dsn) as queue, pytest.raises(TypeError, match=r"conn is a psycopg\.Connection here"):
        queue.enqueue("welcome", conn=given)
    async with AsyncJobQueue(database.dsn) as async_queue:
        with pytest.raises(TypeError, match=r"conn is a psycopg\.AsyncConnection here"):
            await async_queue.enqueue("welcome", conn=given)
