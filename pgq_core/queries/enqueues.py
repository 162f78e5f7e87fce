"""Statements of the queue's own face: enqueue, leases of own loops, and what became of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.domain.enqueue import JobSettings, NewJob
from pgq_core.domain.job import JSON
from pgq_core.queries.statement import QueryGroup, Statement

MAX_ANNOUNCED_TYPES = 10_000
MAX_RUNS_OF_JOB = 100


@dataclass(frozen=True, slots=True)
class EnqueuedRow:
    """One item of a batch. `position` from 1; `id` None: ask again, its key was in another transaction's hands."""

    position: int
    id: int | None
    created: bool
    conflict: bool


@dataclass(frozen=True, slots=True)
class AnnouncedTypeRow:
    name: str
    queue: str | None
    max_attempts: int | None
    timeout: timedelta | None
    backoff_base: timedelta
    backoff_cap: timedelta


@dataclass(frozen=True, slots=True)
class LeaseRow:
    lease_until: datetime
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class FoundJobRow:
    """What three tables know of one job. `status`: of its live row; `outcome`: of its final or last run."""

    status: str | None
    queue: str | None
    job_type: str | None
    payload: JSON
    priority: int | None
    attempts: int | None
    max_attempts: int | None
    not_before: datetime | None
    created_at: datetime | None
    idempotency_key: str | None
    locked_by: str | None
    locked_at: datetime | None
    cancel_requested: bool
    last_error: str | None
    replayed_from: int | None
    outcome: str | None
    result: JSON
    finished_at: datetime | None
    dead_letter_id: int | None
    reason: str | None
    died_at: datetime | None
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    replayed_job_id: int | None
    runs: JSON


@dataclass(frozen=True, slots=True)
class JobEndRow:
    is_live: bool
    outcome: str | None
    result: JSON
    error: str | None
    dead_letter_id: int | None
    last_error: str | None
    resolution: str | None
    replayed_job_id: int | None


def array_of_numbers(text: str) -> list[int]:
    """
    >>> array_of_numbers("{1,22,3}")
    [1, 22, 3]
    """
    return list(map(int, text[1:-1].split(",")))


class EnqueueQueries(QueryGroup):
    def enqueue_job(self, job: NewJob) -> Statement[int]:
        """For a job without a key. Row: its id."""
        return self._statement(
            "enqueue_job",
            int,
            queue=job.queue,
            payload=job.payload,
            priority=job.priority,
            delay=job.delay,
            not_before=job.not_before,
            max_attempts=job.max_attempts,
            timeout=job.timeout,
            trace_context=job.trace_context,
        )

    def enqueue_alike_jobs(self, settings: JobSettings, payloads: Sequence[bytes]) -> Statement[str]:
        """For jobs without keys that share their settings. Row: their ids in input order, as the text of an array."""
        return self._statement("enqueue_alike_jobs", str, payloads=b"\n".join(payloads).decode(), **settings._asdict())

    def enqueue_jobs(self, jobs: Sequence[NewJob]) -> Statement[EnqueuedRow]:
        """One row per item, in input order."""
        return self._statement(
            "enqueue_jobs",
            EnqueuedRow,
            queues=[j.queue for j in jobs],
            payloads=[j.payload for j in jobs],
            priorities=[j.priority for j in jobs],
            delays=[j.delay for j in jobs],
            not_befores=[j.not_before for j in jobs],
            keys=[j.idempotency_key for j in jobs],
            max_attempts=[j.max_attempts for j in jobs],
            timeouts=[j.timeout for j in jobs],
            trace_contexts=[j.trace_context for j in jobs],
        )

    def list_announced_types(self) -> Statement[AnnouncedTypeRow]:
        return self._statement("list_announced_types", AnnouncedTypeRow, limit=MAX_ANNOUNCED_TYPES)

    def extend_lease(self, *, id: int, token: int | None, lease: timedelta) -> Statement[LeaseRow]:  # noqa: A002
        """No row: the claim is no longer ours."""
        return self._statement("extend_lease", LeaseRow, id=id, token=token, lease=lease)

    def find_job(self, job_id: int) -> Statement[FoundJobRow]:
        """No row: nothing is known of it."""
        return self._statement("find_job", FoundJobRow, job_id=job_id, run_limit=MAX_RUNS_OF_JOB)

    def find_job_end(self, job_id: int) -> Statement[JobEndRow]:
        return self._statement("find_job_end", JobEndRow, job_id=job_id)
