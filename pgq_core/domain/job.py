"""The job as its handlers and callers see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""A JSON value: dict, list, str, int, float, bool or None."""

DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 5
MIN_PRIORITY = -32768
MAX_PRIORITY = 32767


class JobStatus(StrEnum):
    """Where a live row of `jobs` stands."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    RUNNING = "running"


class Outcome(StrEnum):
    """How a run, or a whole job, ended."""

    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    DEAD = "dead"
    LOST = "lost"
    RELEASED = "released"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    EXPIRED = "expired"


class DeathReason(StrEnum):
    """Why a job became a dead letter."""

    EXHAUSTED = "exhausted"
    NON_RETRYABLE = "non_retryable"
    TIMEOUT = "timeout"
    CRASH_LOOP = "crash_loop"
    UNKNOWN_TYPE = "unknown_type"
    MALFORMED = "malformed"
    EXPIRED = "expired"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Job:
    """One claimed or looked-up row of `jobs`. `attempts` counts the attempts charged so far: 0 during the first run."""

    id: int
    queue: str
    type: str
    data: JSON
    priority: int = 0
    status: JobStatus = JobStatus.RUNNING
    attempts: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    not_before: datetime | None = None
    created_at: datetime | None = None
    idempotency_key: str | None = None
    claim_token: int | None = None
    timeout: timedelta | None = None
    losses: int = 0
    suspect: bool = False
    last_error: str | None = None
    trace_context: JSON = None
    origin_job_id: int | None = None
    replayed_from: int | None = None

    @property
    def attempt(self) -> int:
        """The number of the attempt that runs now, from 1."""
        return self.attempts + 1

    @property
    def is_last_attempt(self) -> bool:
        return self.attempt >= self.max_attempts

    @property
    def key(self) -> str:
        """The same over all attempts and replays: for idempotency headers of other services."""
        return self.idempotency_key or f"job-{self.origin_job_id or self.id}"
