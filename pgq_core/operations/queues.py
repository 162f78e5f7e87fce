"""Verbs on queues: pause, resume, purge, and what they write down."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.audit import AuditRule, checked_rule
from pgq_core.domain.enqueue import checked_name
from pgq_core.domain.job import JSON, JobStatus
from pgq_core.domain.operation import ActionResult, ItemResult, PurgePreview
from pgq_core.domain.snapshot import DEPTH_CAP, Count
from pgq_core.operations.journal import BATCH, Action, Batch, Progress
from pgq_core.operations.verbs import Verbs, stored_reason
from pgq_core.queries.verbs import QueueSettingsRow

_PURGED = (JobStatus.PENDING, JobStatus.SCHEDULED, JobStatus.WAITING)


class QueueVerbs(Verbs):
    async def pause(self, conn: AsyncConnection[Any], queue: str, reason: str | None = None) -> ActionResult:
        """Holds for every claim that starts after this; what runs goes on. A paused queue takes the new reason."""
        name, why = checked_name("queue", queue), stored_reason(reason)
        async with conn.transaction():
            before = await self._queries.lock_queue(queue=name).fetch_one(conn)
            await self._queries.pause_queue(queue=name, reason=why, operator=self.operator).execute(conn)
            return await self._written(conn, Action("pause", f"queue {name}", why), name, before)

    async def resume(self, conn: AsyncConnection[Any], queue: str, reason: str | None = None) -> ActionResult:
        """Lets claims go on, at once. Refused for a queue that is not paused."""
        name, why = checked_name("queue", queue), stored_reason(reason)
        async with conn.transaction():
            before = await self._queries.lock_queue(queue=name).fetch_one(conn)
            if before is None or not before.paused:
                return ActionResult(None, f"queue {name} is not paused")
            await self._queries.resume_queue(queue=name).execute(conn)
            return await self._written(conn, Action("resume", f"queue {name}", why), name, before)

    async def set_audit(
        self,
        conn: AsyncConnection[Any],
        queue: str,
        audit: str,
        *,
        share: float | None = None,
        reason: str | None = None,
    ) -> ActionResult:
        """Which of its runs leave a row in `job_runs` from now on: all, failures, or also a sample (`share`: 1 %).

        Raises InvalidJob for another word, and for a share that is none.
        """
        name, rule, why = checked_name("queue", queue), checked_rule(audit, share), stored_reason(reason)
        async with conn.transaction():
            before = await self._queries.lock_queue(queue=name).fetch_one(conn)
            await self._queries.set_audit(queue=name, rule=rule).execute(conn)
            action = Action("set_audit", f"queue {name}", why, rule.document())
            was = AuditRule() if before is None else before.audit_rule
            undo = {"queue": name, "audit_before": was.document(), "audit": rule.document()}
            return ActionResult(await self._journal.write_down(conn, action, affected=1, undo=undo), affected=1)

    async def preview_purge(self, conn: AsyncConnection[Any], queue: str) -> PurgePreview:
        idle = await self._queries.count_idle_jobs(queue=queue, limit=DEPTH_CAP).fetch_one(conn)
        if idle is None:
            return PurgePreview(queue, Count(0), 0)
        return PurgePreview(queue, Count(min(idle.jobs, DEPTH_CAP), exact=idle.jobs <= DEPTH_CAP), idle.newest_id)

    async def purge(
        self,
        conn: AsyncConnection[Any],
        preview: PurgePreview,
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> ActionResult:
        """Cancels the jobs of the preview, each with a closed run. What runs, and what arrives later, is left alone.

        Cannot be undone: such a job is gone.
        """
        remaining = list(_PURGED)

        async def act() -> Batch:
            while remaining:
                statement = self._queries.purge_jobs(
                    queue=preview.queue, status=remaining[0], max_id=preview.newest_id, limit=BATCH
                )
                if rows := await statement.fetch_all(conn):
                    return Batch([ItemResult(row.id, answer=row.answer) for row in rows])
                remaining.pop(0)
            return Batch([])

        action = Action("purge", f"queue {preview.queue}", stored_reason(reason), {"newest_id": preview.newest_id})
        return await self._journal.repeat(conn, action, act, total=preview.jobs.value, progress=progress)

    async def _written(
        self, conn: AsyncConnection[Any], action: Action, queue: str, before: QueueSettingsRow | None
    ) -> ActionResult:
        undo = {"queue": queue, "before": _pause(before)}
        return ActionResult(await self._journal.write_down(conn, action, affected=1, undo=undo), affected=1)


def _pause(row: QueueSettingsRow | None) -> JSON:
    if row is None or not row.paused:
        return None
    return {"paused_by": row.paused_by, "reason": row.pause_reason}
