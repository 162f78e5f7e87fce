"""What the queue answers about a job that exists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pgq_core.domain.job import JSON


class JobState(StrEnum):
    """Where a job stands: the status of its row, or how it ended."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    EXPIRED = "expired"
    DELETED = "deleted"  # its row is gone without a final run: somebody deleted it by hand

    @property
    def is_final(self) -> bool:
        return self not in (JobState.PENDING, JobState.SCHEDULED, JobState.WAITING, JobState.RUNNING)


class CancelAnswer(StrEnum):
    """CANCELLED is final. REQUESTED: its worker was asked, the run may still succeed. ENDED: it was over already."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Lease:
    """How long a claim holds. `cancel_requested`: an operator asks this job to stop."""

    until: datetime
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class FailedJob:
    """What a failure led to: another attempt at `retry_at`, or a dead letter."""

    retry_at: datetime | None = None
    dead_letter_id: int | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """One closed attempt. `attempt` 0: the job ended without having run."""

    id: int
    attempt: int
    outcome: str
    worker_id: str
    started_at: datetime
    finished_at: datetime
    error: str | None
    error_class: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterReport:
    """The dead letter a job became. `replayed_job_id`: the job that a replay made of it."""

    id: int
    reason: str
    last_error: str
    died_at: datetime
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    replayed_job_id: int | None


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that is known of one job, in whatever state it is.

    `data` is None once the job has ended well: its payload leaves with its row. `runs`: the latest 100, oldest first.
    `replayed_from`: the dead letter that this job is a replay of.
    """

    id: int
    state: JobState
    queue: str | None
    type: str | None
    data: JSON
    priority: int | None
    attempts: int
    max_attempts: int | None
    not_before: datetime | None
    created_at: datetime | None
    idempotency_key: str | None
    locked_by: str | None
    locked_at: datetime | None
    cancel_requested: bool
    last_error: str | None
    result: JSON
    finished_at: datetime | None
    runs: tuple[RunReport, ...]
    dead_letter: DeadLetterReport | None
    replayed_from: int | None

    @property
    def follow_up(self) -> int | None:
        """The id of the job that a replay made of this one."""
        return None if self.dead_letter is None else self.dead_letter.replayed_job_id
