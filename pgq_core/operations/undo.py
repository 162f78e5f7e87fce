"""Taking an action back, as far as the world has not moved on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.audit import checked_rule
from pgq_core.domain.job import JSON, JobStatus
from pgq_core.domain.operation import BulkResult, ItemResult
from pgq_core.errors import OperationRefused
from pgq_core.operations.journal import Action, Batch, Progress
from pgq_core.operations.verbs import Verbs
from pgq_core.queries.verbs import OperationRow, PlaceRow, QueueSettingsRow, StatusRow

_RESOLUTIONS = {"replay": "replayed", "edit_and_replay": "replayed", "discard": "discarded"}


class UndoVerb(Verbs):
    async def undo(
        self, conn: AsyncConnection[Any], operation_id: int, *, progress: Progress | None = None
    ) -> BulkResult:
        """Takes back what `operation_id` did, item by item where it did many; items that moved on are refused.

        A replay is taken back while its job is unclaimed, a discard at any time, a move or a new due time while the job
        does not run. Raises OperationRefused for an action that is unknown, was undone, or cannot be undone.
        """
        operation = await self._undoable(conn, operation_id)
        action = Action("undo", f"operation {operation_id}: {operation.action} {operation.target}")
        ids = _ids_of(operation.undo)
        if ids is None:
            return BulkResult(await self._undo_one(conn, operation, action))
        act = self._undo_of_items(conn, operation)
        result = await self._journal.carry_out(conn, action, ids, act, progress=progress)
        # Marked last: an undo that was cut short can be repeated; what was taken back already is only refused.
        await self._queries.mark_undone(operation_id=operation_id, operator=self.operator).execute(conn)
        return result

    async def _undoable(self, conn: AsyncConnection[Any], operation_id: int) -> OperationRow:
        operation = await self._queries.lock_operation(operation_id=operation_id).fetch_one(conn)
        if operation is None:
            raise OperationRefused(f"there is no operation {operation_id}")
        if operation.undone_at is not None:
            raise OperationRefused(f"operation {operation_id} was undone already by {operation.undone_by}")
        if operation.undo is None:
            raise OperationRefused(f"operation {operation_id} ({operation.action}) cannot be undone")
        return operation

    def _undo_of_items(
        self, conn: AsyncConnection[Any], operation: OperationRow
    ) -> Callable[[Sequence[int]], Awaitable[Batch]]:
        if "due_times" in operation.undo:
            return lambda batch: self._restore_due_times(conn, batch, operation.undo["due_times"])
        if "queues" in operation.undo:
            return lambda batch: self._restore_queues(conn, batch, operation.undo["queues"])
        return lambda batch: self._restore_letters(conn, batch, operation)

    async def _restore_letters(
        self, conn: AsyncConnection[Any], batch: Sequence[int], operation: OperationRow
    ) -> Batch:
        rows = await self._queries.undo_resolutions(
            batch,
            resolution=_RESOLUTIONS[operation.action],
            operator=operation.operator,
        ).fetch_all(conn)
        refusals = {row.id: row.refusal for row in rows}
        items = [ItemResult(i, refusals.get(i, f"there is no dead letter {i} any more")) for i in batch]
        if "payload" in operation.undo and items[0].refusal is None:
            await self._queries.restore_payload(
                batch[0], payload=operation.undo["payload"], original_payload=operation.undo["original"]
            ).execute(conn)
        return Batch(items)

    async def _restore_due_times(
        self, conn: AsyncConnection[Any], batch: Sequence[int], due_times: dict[str, str]
    ) -> Batch:
        wanted = {job_id: datetime.fromisoformat(due_times[str(job_id)]) for job_id in batch}
        rows = await self._queries.restore_due_times(wanted).fetch_all(conn)
        await self._queries.notify_processes("jobs").execute(conn)
        return Batch(_moved_on(batch, rows))

    async def _restore_queues(self, conn: AsyncConnection[Any], batch: Sequence[int], queues: dict[str, str]) -> Batch:
        rows = await self._queries.move_jobs({job_id: queues[str(job_id)] for job_id in batch}).fetch_all(conn)
        await self._queries.notify_processes("jobs").execute(conn)
        return Batch(_moved_on(batch, rows))

    async def _undo_one(self, conn: AsyncConnection[Any], operation: OperationRow, action: Action) -> int:
        async with conn.transaction():
            await self._undoable(conn, operation.id)  # locked now: of two operators who undo it at once, one is refused
            if "pool" in operation.undo:
                await self._restore_scale(conn, operation.undo)
            elif "audit" in operation.undo:
                await self._restore_audit(conn, operation.undo)
            else:
                await self._restore_pause(conn, operation)
            await self._queries.mark_undone(operation_id=operation.id, operator=self.operator).execute(conn)
            return await self._journal.write_down(conn, action, affected=1)

    async def _restore_scale(self, conn: AsyncConnection[Any], undo: JSON) -> None:
        changed = await self._queries.set_pool_wanted(
            host=undo["host"], pool=undo["pool"], wanted=undo["wanted"], operator=self.operator
        ).execute(conn)
        if not changed:
            raise OperationRefused(f"pool {undo['pool']} on {undo['host']} cannot have {undo['wanted']} workers now")
        await self._queries.notify_processes("pools").execute(conn)

    async def _restore_audit(self, conn: AsyncConnection[Any], undo: JSON) -> None:
        queue = undo["queue"]
        now = await self._queries.lock_queue(queue=queue).fetch_one(conn)
        if now is None or now.audit_rule.document() != undo["audit"]:
            raise OperationRefused(f"what queue {queue} writes down has been set again since: that stays")
        before = checked_rule(undo["audit_before"]["audit"], undo["audit_before"].get("share"))
        await self._queries.set_audit(queue=queue, rule=before).execute(conn)

    async def _restore_pause(self, conn: AsyncConnection[Any], operation: OperationRow) -> None:
        queue, before = operation.undo["queue"], operation.undo["before"]
        now = await self._queries.lock_queue(queue=queue).fetch_one(conn)
        if refusal := _why_pause_stays(operation, now):
            raise OperationRefused(refusal)
        if before is None:
            await self._queries.resume_queue(queue=queue).execute(conn)
            return
        await self._queries.pause_queue(
            queue=queue, reason=before["reason"], operator=before["paused_by"] or self.operator
        ).execute(conn)


def _why_pause_stays(operation: OperationRow, now: QueueSettingsRow | None) -> str | None:
    """Why there is nothing of a pause or a resumption left to take back; None when it still stands."""
    queue = operation.undo["queue"]
    is_paused = now is not None and now.paused
    if operation.action == "pause" and not is_paused:
        return f"queue {queue} is not paused any more: there is nothing to take back"
    if operation.action == "pause" and now is not None and now.paused_by != operation.operator:
        return f"queue {queue} has been paused again by {now.paused_by or 'somebody'} since: that pause stays"
    if operation.action == "resume" and is_paused:
        return f"queue {queue} is paused again already: there is nothing to take back"
    return None


def _ids_of(undo: JSON) -> list[int] | None:
    """The items that an operation acted on; None when it acted on one queue or pool."""
    if "dead_letter_ids" in undo:
        return list(undo["dead_letter_ids"])
    for name in ("due_times", "queues"):
        if name in undo:
            return [int(job_id) for job_id in undo[name]]
    return None


def _moved_on(batch: Sequence[int], rows: Sequence[StatusRow] | Sequence[PlaceRow]) -> list[ItemResult]:
    statuses = {row.id: row.status for row in rows}
    return [ItemResult(job_id, _why_not(job_id, statuses.get(job_id))) for job_id in batch]


def _why_not(job_id: int, status: str | None) -> str | None:
    if status is None:
        return f"there is no live job {job_id} any more"
    if status in {JobStatus.PENDING, JobStatus.SCHEDULED}:
        return None
    return f"it is {status} by now"
