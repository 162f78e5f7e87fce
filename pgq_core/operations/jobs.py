"""Verbs on live jobs: cancel, reschedule, move."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.enqueue import checked_name, checked_not_before
from pgq_core.domain.job import JobStatus
from pgq_core.domain.operation import BulkResult, ItemResult
from pgq_core.operations.journal import Action, Batch, Progress
from pgq_core.operations.verbs import Verbs, counted, stored_reason

_MOVABLE = frozenset((JobStatus.PENDING, JobStatus.SCHEDULED))


class JobVerbs(Verbs):
    async def cancel(
        self,
        conn: AsyncConnection[Any],
        job_ids: Collection[int],
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Ends jobs that do not run, and asks the workers of those that do. Cannot be undone: such a job is gone."""

        async def act(batch: Sequence[int]) -> Batch:
            rows = await self._queries.cancel_jobs(batch).fetch_all(conn)
            return Batch([_cancelled(row.id, row.answer) for row in rows])

        action = Action("cancel", counted(len(set(job_ids)), "job"), stored_reason(reason))
        return await self._journal.carry_out(conn, action, job_ids, act, progress=progress)

    async def reschedule(
        self,
        conn: AsyncConnection[Any],
        job_ids: Collection[int],
        when: datetime | None,
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Another due time for jobs that do not run; None: now. Attempts stay as they are."""
        due = None if when is None else checked_not_before(when)

        async def act(batch: Sequence[int]) -> Batch:
            rows = {row.id: row for row in await self._queries.change_due_times(batch, due=due).fetch_all(conn)}
            items = [_judged(job_id, rows[job_id].status if job_id in rows else None) for job_id in batch]
            before = {str(i.id): rows[i.id].not_before.isoformat() for i in items if i.refusal is None}
            await self._queries.notify_processes("jobs").execute(conn)
            return Batch(items, {"due_times": before} if before else None)

        parameters = {"due": due.isoformat() if due else "now"}
        action = Action("reschedule", counted(len(set(job_ids)), "job"), stored_reason(reason), parameters)
        return await self._journal.carry_out(conn, action, job_ids, act, progress=progress)

    async def move(
        self,
        conn: AsyncConnection[Any],
        job_ids: Collection[int],
        queue: str,
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Into another queue, with priority, due time and attempts as they are; only jobs that do not run."""
        wanted = checked_name("queue", queue)

        async def act(batch: Sequence[int]) -> Batch:
            moves = dict.fromkeys(batch, wanted)
            rows = {row.id: row for row in await self._queries.move_jobs(moves).fetch_all(conn)}
            items = [_judged(job_id, rows[job_id].status if job_id in rows else None) for job_id in batch]
            before = {str(i.id): rows[i.id].queue for i in items if i.refusal is None}
            await self._queries.notify_processes("jobs").execute(conn)
            return Batch(items, {"queues": before, "moved_to": wanted} if before else None)

        action = Action("move", counted(len(set(job_ids)), "job"), stored_reason(reason), {"queue": wanted})
        return await self._journal.carry_out(conn, action, job_ids, act, progress=progress)


def _cancelled(job_id: int, answer: str) -> ItemResult:
    if answer == "not found":
        return ItemResult(job_id, f"there is no live job {job_id}: it has ended, or never was")
    return ItemResult(job_id, answer=answer)


def _judged(job_id: int, status: str | None) -> ItemResult:
    """Whether a job that was found in `status` could be changed."""
    match status:
        case None:
            return ItemResult(job_id, f"there is no live job {job_id}: it has ended, or never was")
        case JobStatus.RUNNING:
            return ItemResult(job_id, "it runs right now")
        case JobStatus.WAITING:
            return ItemResult(job_id, "it is held by flow control")
        case _:
            return ItemResult(job_id)
