"""Statements of operator verbs: each names the state it expects, and tells per item what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg.types.json import Jsonb

from pgq_core.domain.audit import Audit, AuditRule
from pgq_core.domain.job import JSON
from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class ReplayRow:
    id: int
    job_id: int | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class RefusalRow:
    id: int
    refusal: str | None


@dataclass(frozen=True, slots=True)
class CancelRow:
    """`answer`: 'cancelled', 'requested' or 'not found'."""

    id: int
    answer: str


@dataclass(frozen=True, slots=True)
class EditRow:
    """The payloads (JSON text) before the edit."""

    id: int
    payload: str
    original_payload: str | None


@dataclass(frozen=True, slots=True)
class DueTimeRow:
    """Status and due time before the change."""

    id: int
    status: str
    not_before: datetime


@dataclass(frozen=True, slots=True)
class StatusRow:
    id: int
    status: str


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """Status and queue before the move."""

    id: int
    status: str
    queue: str


@dataclass(frozen=True, slots=True)
class IdleRow:
    """`jobs`: up to one past the limit of each status. `newest_id`: of all jobs."""

    jobs: int
    newest_id: int


@dataclass(frozen=True, slots=True)
class QueueSettingsRow:
    name: str
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    audit: str
    audit_sample: float

    @property
    def audit_rule(self) -> AuditRule:
        return AuditRule(Audit(self.audit), self.audit_sample)


@dataclass(frozen=True, slots=True)
class PoolNumbersRow:
    host: str
    name: str
    wanted: int
    minimum: int
    maximum: int
    state: str


@dataclass(frozen=True, slots=True)
class WorkerWantedRow:
    id: str
    state: str
    wanted: str
    stopped_at: datetime | None


@dataclass(frozen=True, slots=True)
class OperationRow:
    id: int
    at: datetime
    operator: str
    action: str
    target: str
    undo: JSON
    undone_at: datetime | None
    undone_by: str | None


@dataclass(frozen=True, slots=True)
class ImportRow:
    """`dead_letter_id` None: it is here already."""

    line: int
    dead_letter_id: int | None


class VerbQueries(QueryGroup):
    def replay_dead_letters(self, ids: Sequence[int], *, operator: str, spread: timedelta) -> Statement[ReplayRow]:
        return self._statement("replay_dead_letters", ReplayRow, ids=list(ids), operator=operator, spread=spread)

    def discard_dead_letters(self, ids: Sequence[int], *, operator: str) -> Statement[RefusalRow]:
        return self._statement("discard_dead_letters", RefusalRow, ids=list(ids), operator=operator)

    def undo_resolutions(self, ids: Sequence[int], *, resolution: str, operator: str) -> Statement[RefusalRow]:
        """`operator`: of the operation that is undone."""
        return self._statement("undo_resolutions", RefusalRow, ids=list(ids), resolution=resolution, operator=operator)

    def edit_dead_letter(self, dead_letter_id: int, *, payload: str) -> Statement[EditRow]:
        """`payload` is JSON text."""
        return self._statement("edit_dead_letter", EditRow, dead_letter_id=dead_letter_id, payload=payload)

    def restore_payload(self, dead_letter_id: int, *, payload: str, original_payload: str | None) -> Statement[object]:
        return self._statement(
            "restore_payload", dead_letter_id=dead_letter_id, payload=payload, original_payload=original_payload
        )

    def import_dead_letters(self, documents: Mapping[int, str]) -> Statement[ImportRow]:
        """JSON text by line number."""
        return self._statement("import_dead_letters", ImportRow, lines=list(documents), docs=list(documents.values()))

    def cancel_jobs(self, ids: Sequence[int]) -> Statement[CancelRow]:
        return self._statement("cancel_jobs", CancelRow, ids=list(ids))

    def purge_jobs(self, *, queue: str, status: str, max_id: int, limit: int) -> Statement[CancelRow]:
        return self._statement("purge_jobs", CancelRow, queue=queue, status=status, max_id=max_id, limit=limit)

    def count_idle_jobs(self, *, queue: str, limit: int) -> Statement[IdleRow]:
        return self._statement("count_idle_jobs", IdleRow, queue=queue, limit=limit)

    def change_due_times(self, ids: Sequence[int], *, due: datetime | None) -> Statement[DueTimeRow]:
        """`due` None: now, by the database's clock."""
        return self._statement("change_due_times", DueTimeRow, ids=list(ids), due=due)

    def restore_due_times(self, due_times: Mapping[int, datetime]) -> Statement[StatusRow]:
        return self._statement("restore_due_times", StatusRow, ids=list(due_times), due=list(due_times.values()))

    def move_jobs(self, queues: Mapping[int, str]) -> Statement[PlaceRow]:
        """`queues`: the wanted queue of each job."""
        return self._statement("move_jobs", PlaceRow, ids=list(queues), queues=list(queues.values()))

    def lock_queue(self, *, queue: str) -> Statement[QueueSettingsRow]:
        return self._statement("lock_queue", QueueSettingsRow, queue=queue)

    def pause_queue(self, *, queue: str, reason: str | None, operator: str) -> Statement[object]:
        return self._statement("pause_queue", queue=queue, reason=reason, operator=operator)

    def resume_queue(self, *, queue: str) -> Statement[object]:
        return self._statement("resume_queue", queue=queue)

    def set_audit(self, *, queue: str, rule: AuditRule) -> Statement[object]:
        return self._statement("set_audit", queue=queue, audit=rule.audit, sample=rule.sample)

    def lock_pool(self, *, host: str, pool: str) -> Statement[PoolNumbersRow]:
        return self._statement("lock_pool", PoolNumbersRow, host=host, pool=pool)

    def set_pool_wanted(self, *, host: str, pool: str, wanted: int, operator: str) -> Statement[object]:
        return self._statement("set_pool_wanted", host=host, pool=pool, wanted=wanted, operator=operator)

    def restart_pool(self, *, host: str, pool: str, operator: str) -> Statement[str]:
        """Rows: the ids of the workers that were asked."""
        return self._statement("restart_pool", str, host=host, pool=pool, operator=operator)

    def lock_worker(self, *, worker_id: str) -> Statement[WorkerWantedRow]:
        return self._statement("lock_worker", WorkerWantedRow, worker_id=worker_id)

    def set_worker_wanted(self, *, worker_id: str, wanted: str) -> Statement[object]:
        return self._statement("set_worker_wanted", worker_id=worker_id, wanted=wanted)

    def notify_processes(self, word: str) -> Statement[object]:
        return self._statement("notify_processes", word=word)

    def add_operation(
        self,
        *,
        operator: str,
        action: str,
        target: str,
        reason: str | None,
        affected: int,
        refused: int,
        parameters: JSON,
        undo: JSON,
    ) -> Statement[int]:
        """Rows: the id of the new operation. `undo` None: it cannot be taken back."""
        return self._statement(
            "add_operation",
            int,
            operator=operator,
            action=action,
            target=target,
            reason=reason,
            affected=affected,
            refused=refused,
            parameters=Jsonb(parameters),
            undo=None if undo is None else Jsonb(undo),
        )

    def extend_operation(self, operation_id: int, *, affected: int, refused: int, undo: JSON) -> Statement[object]:
        return self._statement(
            "extend_operation",
            operation_id=operation_id,
            affected=affected,
            refused=refused,
            undo=None if undo is None else Jsonb(undo),
        )

    def lock_operation(self, *, operation_id: int) -> Statement[OperationRow]:
        return self._statement("lock_operation", OperationRow, operation_id=operation_id)

    def mark_undone(self, *, operation_id: int, operator: str) -> Statement[object]:
        return self._statement("mark_undone", operation_id=operation_id, operator=operator)
