"""Statements of lists and single records: keyset pages; the server cuts errors in lists and payloads in records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from pgq_core.domain.filters import DeadLetterFilters, RunFilters
from pgq_core.domain.job import JSON
from pgq_core.domain.operation import OperationDetail, OperationView
from pgq_core.domain.snapshot import (
    Count,
    DeadGroup,
    DeadLetterDetail,
    DeadLetterView,
    JobCursor,
    JobView,
    LiveJob,
    RunDetail,
    RunningView,
    RunView,
)
from pgq_core.queries.statement import QueryGroup, Statement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

View = TypeVar("View", bound="DataclassInstance")

ABOVE_ALL_IDS = 2**63 - 1
EVERYTHING = 2**62
"""As `reach`: look at all rows, however many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetailRow(RunView):
    traceback: str | None
    result_text: str | None
    result_size: int

    def to_detail(self) -> RunDetail:
        return RunDetail(_part(RunView, self), self.traceback, self.result_text, self.result_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJobRow(JobView):
    locked_at: datetime | None
    lease_until: datetime | None
    timeout: timedelta | None
    losses: int
    suspect: bool
    cancel_requested: bool
    origin_job_id: int | None
    replayed_from: int | None
    payload_text: str
    payload_size: int
    no_worker_serves_queue: bool
    is_queue_paused: bool

    def to_live_job(self) -> LiveJob:
        return LiveJob(
            job=_part(JobView, self),
            payload_text=self.payload_text,
            payload_size=self.payload_size,
            locked_at=self.locked_at,
            lease_until=self.lease_until,
            timeout=self.timeout,
            losses=self.losses,
            is_suspect=self.suspect,
            cancel_requested=self.cancel_requested,
            origin_job_id=self.origin_job_id,
            replayed_from=self.replayed_from,
            no_worker_serves_queue=self.no_worker_serves_queue,
            is_queue_paused=self.is_queue_paused,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterDetailRow(DeadLetterView):
    priority: int
    idempotency_key: str | None
    created_at: datetime | None
    traceback: str | None
    payload_text: str
    payload_size: int
    original_payload_text: str | None
    attempt_log: JSON
    note: str | None
    follow_up: str | None

    def to_detail(self) -> DeadLetterDetail:
        return DeadLetterDetail(
            letter=_part(DeadLetterView, self),
            priority=self.priority,
            idempotency_key=self.idempotency_key,
            created_at=self.created_at,
            traceback=self.traceback,
            payload_text=self.payload_text,
            payload_size=self.payload_size,
            attempt_log=self.attempt_log,
            note=self.note,
            follow_up=self.follow_up,
            original_payload_text=self.original_payload_text,
        )


@dataclass(frozen=True, slots=True)
class DeadGroupRow:
    """`letters` goes up to one past the cap."""

    fingerprint: str | None
    job_type: str | None
    queue: str
    error_class: str | None
    sample_error: str
    letters: int
    first_at: datetime
    last_at: datetime

    def to_group(self, cap: int) -> DeadGroup:
        return DeadGroup(
            fingerprint=self.fingerprint,
            job_type=self.job_type,
            queue=self.queue,
            error_class=self.error_class,
            sample_error=self.sample_error,
            count=Count(min(self.letters, cap), exact=self.letters <= cap),
            first_at=self.first_at,
            last_at=self.last_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDetailRow(OperationView):
    parameters: JSON

    def to_detail(self) -> OperationDetail:
        return OperationDetail(_part(OperationView, self), self.parameters)


class ListQueries(QueryGroup):
    def list_runs(self, filters: RunFilters, *, before: int, reach: int, limit: int) -> Statement[RunView]:
        return self._planned_anew(
            "list_runs", RunView, **_run_filters(filters), before=before, reach=reach, limit=limit
        )

    def list_runs_after(
        self, filters: RunFilters, *, after: int, seen: Collection[int], limit: int
    ) -> Statement[RunView]:
        return self._planned_anew(
            "list_runs_after",
            RunView,
            **_run_filters(filters),
            job_id=filters.job_id,
            after=after,
            seen=list(seen),
            limit=limit,
        )

    def list_runs_of_job(self, *, job_id: int, limit: int) -> Statement[RunView]:
        return self._statement("list_runs_of_job", RunView, job_id=job_id, limit=limit)

    def read_run(self, *, run_id: int, limit: int) -> Statement[RunDetailRow]:
        return self._statement("read_run", RunDetailRow, run_id=run_id, limit=limit)

    def list_running_jobs(
        self,
        *,
        worker_id: str | None,
        queue: str | None,
        job_type: str | None,
        stale_limit: timedelta,
        limit: int,
    ) -> Statement[RunningView]:
        return self._statement(
            "list_running_jobs",
            RunningView,
            worker_id=worker_id,
            queue=queue,
            job_type=job_type,
            stale_limit=stale_limit,
            limit=limit,
        )

    def list_jobs(
        self,
        *,
        queue: str | None,
        job_type: str | None,
        before: int,
        stale_limit: timedelta,
        reach: int,
        limit: int,
    ) -> Statement[JobView]:
        return self._planned_anew(
            "list_jobs",
            JobView,
            queue=queue,
            job_type=job_type,
            before=before,
            stale_limit=stale_limit,
            reach=reach,
            limit=limit,
        )

    def list_claimed_jobs(
        self,
        *,
        queue: str | None,
        job_type: str | None,
        before: int,
        stale_limit: timedelta,
        reach: int,
        limit: int,
    ) -> Statement[JobView]:
        return self._planned_anew(
            "list_claimed_jobs",
            JobView,
            queue=queue,
            job_type=job_type,
            before=before,
            stale_limit=stale_limit,
            reach=reach,
            limit=limit,
        )

    def list_pending_jobs(
        self,
        *,
        queue: str | None,
        job_type: str | None,
        after: JobCursor | None,
        stale_limit: timedelta,
        reach: int,
        limit: int,
    ) -> Statement[JobView]:
        return self._planned_anew(
            "list_pending_jobs",
            JobView,
            queue=queue,
            job_type=job_type,
            after_queue=after and after.queue,
            after_priority=after and after.priority,
            after_not_before=after and after.not_before,
            after_id=after and after.id,
            stale_limit=stale_limit,
            reach=reach,
            limit=limit,
        )

    def list_scheduled_jobs(
        self,
        *,
        queue: str | None,
        job_type: str | None,
        after: JobCursor | None,
        stale_limit: timedelta,
        reach: int,
        limit: int,
    ) -> Statement[JobView]:
        return self._planned_anew(
            "list_scheduled_jobs",
            JobView,
            queue=queue,
            job_type=job_type,
            after_queue=after and after.queue,
            after_not_before=after and after.not_before,
            after_id=after and after.id,
            stale_limit=stale_limit,
            reach=reach,
            limit=limit,
        )

    def list_waiting_jobs(
        self,
        *,
        queue: str | None,
        job_type: str | None,
        after: JobCursor | None,
        stale_limit: timedelta,
        reach: int,
        limit: int,
    ) -> Statement[JobView]:
        return self._planned_anew(
            "list_waiting_jobs",
            JobView,
            queue=queue,
            job_type=job_type,
            after_queue=after and after.queue,
            after_waiting_for=after and after.waiting_for,
            after_id=after and after.id,
            stale_limit=stale_limit,
            reach=reach,
            limit=limit,
        )

    def read_job_row(self, *, job_id: int, stale_limit: timedelta, limit: int) -> Statement[LiveJobRow]:
        return self._statement("read_job_row", LiveJobRow, job_id=job_id, stale_limit=stale_limit, limit=limit)

    def list_dead_letters(
        self, filters: DeadLetterFilters, *, before: int, reach: int, limit: int
    ) -> Statement[DeadLetterView]:
        return self._planned_anew(
            "list_dead_letters", DeadLetterView, **_letter_filters(filters), before=before, reach=reach, limit=limit
        )

    def list_dead_letter_ids(
        self, filters: DeadLetterFilters, *, before: int, reach: int, limit: int
    ) -> Statement[int]:
        return self._planned_anew(
            "list_dead_letter_ids", int, **_letter_filters(filters), before=before, reach=reach, limit=limit
        )

    def count_dead_letters(self, filters: DeadLetterFilters, *, before: int, reach: int, limit: int) -> Statement[int]:
        return self._planned_anew(
            "count_dead_letters", int, **_letter_filters(filters), before=before, reach=reach, limit=limit
        )

    def list_dead_groups(self, *, cap: int, most: int) -> Statement[DeadGroupRow]:
        return self._statement("list_dead_groups", DeadGroupRow, cap=cap, most=most)

    def list_letters_of_job(self, *, job_id: int) -> Statement[DeadLetterView]:
        return self._statement("list_letters_of_job", DeadLetterView, job_id=job_id)

    def read_dead_letter(self, *, dead_letter_id: int, limit: int) -> Statement[DeadLetterDetailRow]:
        return self._statement("read_dead_letter", DeadLetterDetailRow, dead_letter_id=dead_letter_id, limit=limit)

    def export_dead_letters(self, ids: Sequence[int]) -> Statement[str]:
        """Rows: JSON text."""
        return self._statement("export_dead_letters", str, ids=list(ids))

    def list_operations(self, *, before: int, limit: int) -> Statement[OperationView]:
        return self._statement("list_operations", OperationView, before=before, limit=limit)

    def read_operation(self, *, operation_id: int) -> Statement[OperationDetailRow]:
        return self._statement("read_operation", OperationDetailRow, operation_id=operation_id)


def _run_filters(filters: RunFilters) -> dict[str, object]:
    return {
        "queue": filters.queue,
        "job_type": filters.job_type,
        "outcomes": list(filters.outcomes) or None,
        "worker_id": filters.worker_id,
        "text": filters.text,
    }


def _letter_filters(filters: DeadLetterFilters) -> dict[str, object]:
    return {**asdict(filters), "resolution": filters.resolution.value}


def _part(view: type[View], row: View) -> View:
    """The row as the view that it extends."""
    return view(**{field.name: getattr(row, field.name) for field in fields(view)})
