from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.domain.audit import Audit
from pgq_core.errors import InvalidJob, OperationRefused
from pgq_core.inspector import Inspector
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from tests.support.operator import OPERATOR
from tests.support.zoo import add_job, add_running_job, value_of

Conn = AsyncConnection[Any]


async def test_paused_queue_gives_no_jobs_until_it_is_resumed(
    conn: Conn, operations: Operations, queries: Queries
) -> None:
    await add_job(conn)
    claim = queries.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)

    await operations.pause(conn, "default", "maintenance")

    assert await claim.fetch_all(conn) == []
    row = await (await conn.execute("SELECT paused_by, pause_reason FROM queues")).fetchone()
    assert row == (OPERATOR, "maintenance")
    await operations.resume(conn, "default")
    assert len(await claim.fetch_all(conn)) == 1


async def test_queue_that_is_not_paused_cannot_be_resumed(conn: Conn, operations: Operations) -> None:
    result = await operations.resume(conn, "default")

    assert (result.operation_id, result.refusal) == (None, "queue default is not paused")


async def test_undone_pause_goes_back_to_the_pause_before_or_to_none(conn: Conn, operations: Operations) -> None:
    first = await operations.pause(conn, "default", "first")
    second = await operations.pause(conn, "default", "second")

    await operations.undo(conn, second.operation_id or 0)
    assert await value_of(conn, "SELECT pause_reason FROM queues") == "first"

    await operations.undo(conn, first.operation_id or 0)
    assert await value_of(conn, "SELECT paused FROM queues") is False


async def test_undone_resume_pauses_again_for_the_old_reason(conn: Conn, operations: Operations) -> None:
    await operations.pause(conn, "default", "why")
    resumed = await operations.resume(conn, "default")

    await operations.undo(conn, resumed.operation_id or 0)

    row = await (await conn.execute("SELECT paused, pause_reason FROM queues")).fetchone()
    assert row == (True, "why")


AUDIT = "SELECT audit, audit_sample, paused FROM queues"


async def test_queue_is_told_what_to_write_down(conn: Conn, operations: Operations, inspector: Inspector) -> None:
    result = await operations.set_audit(conn, "mail", "sample", share=0.2, reason="too many rows")

    assert await (await conn.execute(AUDIT)).fetchone() == ("sample", 0.2, False)
    (queue,) = (await inspector.overview(conn)).queues
    assert (queue.name, queue.audit, queue.audit_sample) == ("mail", Audit.SAMPLE, 0.2)
    columns = "id, operator, action, target, reason, parameters"
    told = await (await conn.execute(f"SELECT {columns} FROM operations".encode())).fetchone()
    wanted = {"audit": "sample", "share": 0.2}
    assert told == (result.operation_id, OPERATOR, "set_audit", "queue mail", "too many rows", wanted)

    await operations.set_audit(conn, "mail", "failures")
    (queue,) = (await inspector.overview(conn)).queues
    assert (queue.audit, queue.audit_sample) == (Audit.FAILURES, None)


async def test_undone_audit_is_the_one_before_unless_it_was_set_again(conn: Conn, operations: Operations) -> None:
    await operations.pause(conn, "mail")
    first = await operations.set_audit(conn, "mail", "sample", share=0.2)
    second = await operations.set_audit(conn, "mail", "failures")

    with pytest.raises(OperationRefused, match="has been set again since"):
        await operations.undo(conn, first.operation_id or 0)
    await operations.undo(conn, second.operation_id or 0)
    assert await (await conn.execute(AUDIT)).fetchone() == ("sample", 0.2, True)
    await operations.undo(conn, first.operation_id or 0)
    assert await (await conn.execute(AUDIT)).fetchone() == ("all", 0.01, True)


@pytest.mark.parametrize(("audit", "share"), [("some", None), ("sample", 0.0), ("sample", 1.5), ("failures", 0.5)])
async def test_audit_that_means_nothing_is_refused(
    conn: Conn, operations: Operations, audit: str, share: float | None
) -> None:
    with pytest.raises(InvalidJob):
        await operations.set_audit(conn, "mail", audit, share=share)

    assert await value_of(conn, "SELECT count(*) FROM operations") == 0


async def test_purge_cancels_what_was_there_and_does_not_run(conn: Conn, operations: Operations) -> None:
    for due_in in (timedelta(0), timedelta(hours=1)):
        await add_job(conn, due_in=due_in)
    await add_job(conn, waiting_for="tenant")
    running, elsewhere = await add_running_job(conn), await add_job(conn, queue="other")
    preview = await operations.preview_purge(conn, "default")
    latecomer = await add_job(conn)

    result = await operations.purge(conn, preview)

    assert (preview.jobs.value, preview.jobs.exact, result.affected) == (3, True, 3)
    left = await conn.execute("SELECT id FROM jobs ORDER BY id")
    assert [row[0] async for row in left] == [running, elsewhere, latecomer]
    assert await value_of(conn, "SELECT count(*) FROM job_runs WHERE outcome = 'cancelled'") == 3
    assert await value_of(conn, "SELECT cancel_requested FROM jobs WHERE id = %s", running) is False


async def test_purge_goes_in_transactions_of_at_most_500(conn: Conn, operations: Operations) -> None:
    await conn.execute("""INSERT INTO jobs (payload) SELECT '{"type": "x"}' FROM generate_series(1, 1100)""")
    steps: list[int] = []

    result = await operations.purge(
        conn, await operations.preview_purge(conn, "default"), progress=lambda done, _: steps.append(done)
    )

    assert (steps, result.affected) == ([500, 1000, 1100], 1100)
    assert await value_of(conn, "SELECT affected FROM operations WHERE id = %s", result.operation_id) == 1100


async def test_undo_of_a_pause_that_is_over_says_that_there_is_nothing_to_take_back(
    conn: Conn, operations: Operations
) -> None:
    paused = await operations.pause(conn, "default", "why")
    resumed = await operations.resume(conn, "default")

    with pytest.raises(OperationRefused, match="not paused any more: there is nothing to take back"):
        await operations.undo(conn, paused.operation_id or 0)

    await operations.pause(conn, "default", "again")
    with pytest.raises(OperationRefused, match="paused again already"):
        await operations.undo(conn, resumed.operation_id or 0)
    await conn.execute("SELECT pause('default', 'mine', 'somebody')")
    with pytest.raises(OperationRefused, match="paused again by somebody since"):
        await operations.undo(conn, paused.operation_id or 0)
    assert await value_of(conn, "SELECT pause_reason FROM queues") == "mine"
