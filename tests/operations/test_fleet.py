from __future__ import annotations

from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.errors import OperationRefused
from pgq_core.operations import Operations
from tests.support.operator import OPERATOR
from tests.support.zoo import add_pool, add_worker, value_of

Conn = AsyncConnection[Any]


async def test_scale_writes_the_wanted_number_and_tells_the_supervisor(
    dsn: str, conn: Conn, operations: Operations
) -> None:
    await add_pool(conn, wanted=2)
    listener = await connect(dsn, application_name="supervisor")
    channel = await value_of(conn, "SELECT wake_channel()")
    await listener.execute(f'LISTEN "{channel}"'.encode())

    result = await operations.scale(conn, "host-a", "emails", 5)

    notices = [notice.payload async for notice in listener.notifies(timeout=60, stop_after=1)]
    await listener.close()
    assert notices == ["pools"]
    assert result.refusal is None
    row = await (await conn.execute("SELECT wanted, updated_by FROM worker_pools")).fetchone()
    assert row == (5, OPERATOR)


async def test_two_steps_up_are_two_workers_more(conn: Conn, operations: Operations) -> None:
    await add_pool(conn, wanted=2)

    await operations.scale_by(conn, "host-a", "emails", 1)
    await operations.scale_by(conn, "host-a", "emails", 1)

    assert await value_of(conn, "SELECT wanted FROM worker_pools") == 4


async def test_pool_is_not_scaled_beyond_its_bounds(conn: Conn, operations: Operations) -> None:
    await add_pool(conn, wanted=2, minimum=1, maximum=3)

    over = await operations.scale(conn, "host-a", "emails", 4)
    drained = await operations.drain_pool(conn, "host-a", "emails")
    unknown = await operations.scale(conn, "host-a", "nobody", 1)

    assert over.refusal == "pool emails on host-a has between 1 and 3 workers, not 4"
    assert drained.refusal == "pool emails on host-a has between 1 and 3 workers, not 0"
    assert unknown.refusal == "there is no pool nobody on host-a"
    assert await value_of(conn, "SELECT count(*) FROM operations") == 0


async def test_undone_scale_brings_the_number_back(conn: Conn, operations: Operations) -> None:
    await add_pool(conn, wanted=2)
    drained = await operations.drain_pool(conn, "host-a", "emails")
    assert await value_of(conn, "SELECT wanted FROM worker_pools") == 0

    await operations.undo(conn, drained.operation_id or 0)

    assert await value_of(conn, "SELECT wanted FROM worker_pools") == 2


async def test_restarted_pool_asks_its_live_workers_and_leaves_its_crash_loop(
    conn: Conn, operations: Operations
) -> None:
    await add_pool(conn, state="crash_loop")
    await add_worker(conn, "w-1", pool="emails")
    await add_worker(conn, "w-2", pool="emails", stopped=True)
    await add_worker(conn, "w-3", pool="other")

    result = await operations.restart_pool(conn, "host-a", "emails")

    assert result.affected == 1
    asked = await conn.execute("SELECT id FROM workers WHERE wanted = 'restart'")
    assert [row[0] async for row in asked] == ["w-1"]
    assert await value_of(conn, "SELECT state FROM worker_pools") == "ok"


@pytest.mark.parametrize("verb", ["drain", "stop", "restart"])
async def test_worker_is_asked_through_its_row(conn: Conn, operations: Operations, verb: str) -> None:
    await add_worker(conn, "w-1")

    result = await getattr(operations, f"{verb}_worker")(conn, "w-1")

    assert await value_of(conn, "SELECT wanted FROM workers") == verb
    assert await value_of(conn, "SELECT action FROM operations WHERE id = %s", result.operation_id) == f"{verb}_worker"
    with pytest.raises(OperationRefused):
        await operations.undo(conn, result.operation_id or 0)


async def test_worker_that_ended_or_never_was_cannot_be_asked(conn: Conn, operations: Operations) -> None:
    await add_worker(conn, "w-1", state="crashed", stopped=True)

    assert (await operations.drain_worker(conn, "w-1")).refusal == "worker w-1 has ended already (crashed)"
    assert (await operations.drain_worker(conn, "w-2")).refusal == "there is no worker w-2"
