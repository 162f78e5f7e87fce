"""What is asked of an enqueue, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pgq_core.domain.job import JSON
from pgq_core.handlers import Handler


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One item of `enqueue_many`. `type`: a handler or a type's name; None leaves its own or the general default."""

    type: Handler[..., Any] | str
    data: object = None
    queue: str | None = None
    priority: int = 0
    delay: timedelta | float | None = None
    not_before: datetime | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | float | None = None
    trace_context: JSON = None


@dataclass(frozen=True, slots=True)
class EnqueuedJob:
    """`created` False: the job that already has the key. `conflict`: that one has another payload or queue."""

    id: int
    created: bool
    conflict: bool = False
