from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.errors import InvalidJob, OperationRefused
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from tests.support.zoo import add_job, add_running_job, start_job, value_of

Conn = AsyncConnection[Any]


async def test_cancel_ends_what_does_not_run_and_asks_what_does(conn: Conn, operations: Operations) -> None:
    pending, running = await add_job(conn), await add_running_job(conn)

    result = await operations.cancel(conn, [pending, running, 987654])

    answers = {item.id: item.answer or item.refusal for item in result.items}
    assert answers == {
        pending: "cancelled",
        running: "requested",
        987654: "there is no live job 987654: it has ended, or never was",
    }
    assert await value_of(conn, "SELECT cancel_requested FROM jobs WHERE id = %s", running) is True
    assert (
        await value_of(conn, "SELECT outcome FROM job_runs WHERE job_id = %s AND attempt = 0", pending) == "cancelled"
    )


async def test_cancelled_job_cannot_be_brought_back(conn: Conn, operations: Operations) -> None:
    result = await operations.cancel(conn, [await add_job(conn)])

    with pytest.raises(OperationRefused, match="cannot be undone"):
        await operations.undo(conn, result.operation_id or 0)


async def test_job_that_is_cancelled_while_it_is_claimed_either_never_runs_or_is_untouched(
    dsn: str, conn: Conn, operations: Operations, queries: Queries
) -> None:
    worker = await connect(dsn, application_name="worker")
    outcomes: set[str] = set()
    try:
        for _ in range(200):
            job_id = await add_job(conn)
            claim = queries.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
            claimed, cancelled = await asyncio.gather(claim.fetch_all(worker), operations.cancel(conn, [job_id]))
            answer = cancelled.items[0].answer or ""
            outcomes.add(answer)
            if answer == "cancelled":
                assert claimed == []
                assert await value_of(conn, "SELECT count(*) FROM jobs WHERE id = %s", job_id) == 0
            else:
                assert answer == "requested"
                assert [row.id for row in claimed] == [job_id]
                await conn.execute("DELETE FROM jobs WHERE id = %s", (job_id,))
    finally:
        await worker.close()
    assert outcomes <= {"cancelled", "requested"}


async def test_rescheduled_job_waits_until_then_and_undo_brings_its_old_time_back(
    conn: Conn, operations: Operations
) -> None:
    job_id = await add_job(conn)
    before = await value_of(conn, "SELECT not_before FROM jobs WHERE id = %s", job_id)
    when = datetime.now(UTC) + timedelta(hours=2)

    result = await operations.reschedule(conn, [job_id], when)

    row = await (await conn.execute("SELECT status, not_before FROM jobs")).fetchone()
    assert row == ("scheduled", when)
    await operations.undo(conn, result.operation_id or 0)
    row = await (await conn.execute("SELECT status, not_before FROM jobs")).fetchone()
    assert row == ("pending", before)


async def test_scheduled_job_is_made_due_now_by_the_clock_of_the_database(conn: Conn, operations: Operations) -> None:
    job_id = await add_job(conn, due_in=timedelta(days=1), attempts=2)

    await operations.reschedule(conn, [job_id], None)

    row = await (await conn.execute("SELECT status, not_before <= now(), attempts FROM jobs")).fetchone()
    assert row == ("pending", True, 2)


async def test_running_and_waiting_jobs_are_neither_moved_nor_rescheduled(conn: Conn, operations: Operations) -> None:
    running, waiting = await add_running_job(conn), await add_job(conn, waiting_for="tenant-1")

    rescheduled = await operations.reschedule(conn, [running, waiting, 987654], None)
    moved = await operations.move(conn, [running, waiting], "other")

    assert [item.refusal for item in rescheduled.items] == [
        "it runs right now",
        "it is held by flow control",
        "there is no live job 987654: it has ended, or never was",
    ]
    assert (moved.done, moved.refused) == (0, 2)
    assert await value_of(conn, "SELECT count(*) FROM jobs WHERE queue = 'other'") == 0


async def test_moved_job_keeps_everything_else_and_undo_moves_it_home(conn: Conn, operations: Operations) -> None:
    job_id = await add_job(conn, queue="a", priority=7, attempts=2, due_in=timedelta(hours=1))

    result = await operations.move(conn, [job_id], "b")

    row = await (await conn.execute("SELECT queue, priority, attempts, status FROM jobs")).fetchone()
    assert row == ("b", 7, 2, "scheduled")
    await operations.undo(conn, result.operation_id or 0)
    assert await value_of(conn, "SELECT queue FROM jobs") == "a"


async def test_undo_of_a_move_leaves_a_job_alone_that_runs_by_now(conn: Conn, operations: Operations) -> None:
    job_id = await add_job(conn, queue="a")
    result = await operations.move(conn, [job_id], "b")
    await start_job(conn, job_id)

    undone = await operations.undo(conn, result.operation_id or 0)

    assert [item.refusal for item in undone.items] == ["it is running by now"]
    assert await value_of(conn, "SELECT queue FROM jobs") == "b"


@pytest.mark.parametrize("queue", ["", "a\x00b", "x" * 201])
async def test_job_is_not_moved_to_a_queue_without_a_possible_name(
    conn: Conn, operations: Operations, queue: str
) -> None:
    with pytest.raises(InvalidJob):
        await operations.move(conn, [await add_job(conn)], queue)
