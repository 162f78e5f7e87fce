"""Claims and plain finishes go over libpq's own calls, and nothing of what the driver's way promises is lost."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.domain.payload import decode_any
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import ClaimedRow, FinishedJob, in_claim_order
from pgq_core.queries.wire import fetch_quickly
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

QUERIES = Queries(SCHEMA)
PREPARED = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'pgq%' ORDER BY name"
NOW = 1_700_000_000.0


@pytest.fixture
def database(shared: QueueDatabase) -> QueueDatabase:
    return shared


@pytest.fixture
async def conn(database: QueueDatabase) -> AsyncIterator[AsyncConnection[Any]]:
    async with await connect(database.dsn, application_name="quick", pinned_plans=True) as conn:
        psycopg.types.json.set_json_loads(decode_any, conn)
        yield conn


def claim(limit: int = 10) -> Statement[ClaimedRow]:
    return QUERIES.claim_jobs(queue="default", worker_id="w", limit=limit, job_types=["t"], lease=None)


def finish(rows: Sequence[ClaimedRow]) -> Statement[int]:
    ids, tokens = [row.id for row in rows], [row.claim_token for row in rows]
    times = [row.claimed_at for row in rows]
    return QUERIES.finish_successes(ids, tokens, times, times, worker_id="w", slot=0)


def put_odd_jobs(database: QueueDatabase) -> None:
    for number, data in enumerate([None, "ü\u2028", {"a": [1, 2.5, None]}]):
        database.run(
            "INSERT INTO jobs (payload, idempotency_key, priority, timeout, trace_context, last_error, origin_job_id)"
            " VALUES (%s, %s, %s, make_interval(days => 2, secs => 3.5), %s, 'é', 7)",
            json.dumps({"type": "t", "data": data}),
            f"key {number}",
            -number,
            json.dumps({"traceparent": "x"}),
        )
    database.run('INSERT INTO jobs (payload) VALUES (\'{"type": "t"}\')')


async def test_both_ways_answer_the_same_rows(database: QueueDatabase, conn: AsyncConnection[Any]) -> None:
    put_odd_jobs(database)
    quick = in_claim_order(await fetch_quickly(conn, claim(), SCHEMA))
    await QUERIES.release_jobs([(row.id, row.claim_token) for row in quick]).fetch_all(conn)
    slow = in_claim_order(await claim().fetch_all(conn))

    of_the_claim = {"claim_token": 0, "claimed_at": 0.0, "not_before": 0.0}
    assert len(quick) == 4
    assert [row._replace(**of_the_claim) for row in quick] == [row._replace(**of_the_claim) for row in slow]
    assert [type(row) for row in quick] == [ClaimedRow] * 4
    assert await fetch_quickly(conn, claim(), SCHEMA) == []
    for count in (1, 3):
        batch, slow = slow[:count], slow[count:]
        assert sorted(await fetch_quickly(conn, finish(batch), SCHEMA)) == sorted(row.id for row in batch)
    names = [row[0] for row in await (await conn.execute(PREPARED)).fetchall()]
    assert names == ["pgq_claim_jobs", "pgq_finish_jobs"]


async def test_a_word_that_comes_with_an_answer_is_heard(database: QueueDatabase, conn: AsyncConnection[Any]) -> None:
    heard: list[str] = []
    conn.add_notify_handler(lambda notify: heard.append(notify.payload))
    await conn.execute("LISTEN somewhere")
    database.run("SELECT pg_notify('somewhere', 'jobs')")

    await eventually_async(lambda: fetch_and_tell(conn, heard))


async def fetch_and_tell(conn: AsyncConnection[Any], heard: list[str]) -> bool:
    await fetch_quickly(conn, claim(), SCHEMA)
    return heard == ["jobs"]


async def test_a_lost_connection_is_an_error_of_the_driver(database: QueueDatabase, conn: AsyncConnection[Any]) -> None:
    await fetch_quickly(conn, claim(), SCHEMA)
    database.run("SELECT pg_terminate_backend(%s)", conn.info.backend_pid)

    with pytest.raises(psycopg.OperationalError):
        await fetch_quickly(conn, claim(), SCHEMA)
    assert conn.closed


async def test_a_refusal_leaves_the_connection_usable(database: QueueDatabase, conn: AsyncConnection[Any]) -> None:
    database.run('INSERT INTO jobs (payload) VALUES (\'{"type": "t"}\')')
    (row,) = await fetch_quickly(conn, claim(), SCHEMA)
    with pytest.raises(psycopg.errors.CheckViolation):  # no partition for that day
        await fetch_quickly(conn, finish([row._replace(claimed_at=NOW)]), SCHEMA)

    assert await fetch_quickly(conn, finish([row]), SCHEMA) == [row.id]


async def test_who_gives_up_a_silent_answer_ends_the_statement_and_the_connection(
    database: QueueDatabase, conn: AsyncConnection[Any]
) -> None:
    database.run('INSERT INTO jobs (payload) VALUES (\'{"type": "t"}\')')
    (row,) = await fetch_quickly(conn, claim(), SCHEMA)
    backend = conn.info.backend_pid
    with psycopg.connect(database.dsn) as other:
        other.execute(f"SELECT FROM {SCHEMA}.jobs WHERE id = %s FOR UPDATE", (row.id,))  # type: ignore[arg-type]
        finishing = asyncio.create_task(fetch_quickly(conn, finish([row]), SCHEMA))
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        await eventually_async(lambda: database.value(blocked, backend) == 1)
        finishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await finishing
        await eventually_async(
            lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", backend) == 0
        )
    assert conn.closed


async def test_two_tasks_take_turns_on_one_connection(database: QueueDatabase, conn: AsyncConnection[Any]) -> None:
    put_odd_jobs(database)
    answers = await asyncio.gather(
        fetch_quickly(conn, claim(1), SCHEMA), conn.execute("SELECT 1"), fetch_quickly(conn, claim(3), SCHEMA)
    )

    assert [len(answers[0]), len(answers[2])] == [1, 3]


async def test_a_connection_that_was_dropped_is_not_kept_alive(database: QueueDatabase) -> None:
    conn = await connect(database.dsn, application_name="quick", pinned_plans=True)
    await fetch_quickly(conn, claim(), SCHEMA)
    await conn.close()
    dropped = weakref.ref(conn)
    del conn
    gc.collect()

    assert dropped() is None


async def test_what_cannot_go_the_short_way_goes_the_drivers(
    database: QueueDatabase, conn: AsyncConnection[Any]
) -> None:
    database.run('INSERT INTO jobs (payload) VALUES (\'{"type": "t"}\')')
    (row,) = await fetch_quickly(conn, claim(), SCHEMA)
    ended = FinishedJob(row.id, row.claim_token, row.claimed_at, row.claimed_at, result="7")

    assert await fetch_quickly(conn, QUERIES.finish_jobs([ended], worker_id="w", slot=0), SCHEMA) == [row.id]
    assert database.value("SELECT result FROM job_runs") == 7
