"""What a test expects to find in the queue, and what it is told when that is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pgq_core.domain.job import JSON, Job
from pgq_core.domain.payload import decode_any, encode
from pgq_core.errors import MalformedData
from pgq_core.handlers import Handler

ANY: Final = object()
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Expected:
    """A job of this type, in this queue (None: any), with exactly this data (ANY: any)."""

    type: str
    queue: str | None
    data: JSON
    handler: Handler[..., Any] | None = None

    def matches(self, job: Job) -> bool:
        return job.type == self.type and self.queue in (None, job.queue) and self._has_data(job)

    def _has_data(self, job: Job) -> bool:
        if self.data is ANY or job.data == self.data:
            return True
        if self.handler is None or self.handler.model is None:
            return False
        with contextlib.suppress(MalformedData):  # one time, or one number, can be written in several ways
            return bool(self.handler.bind(job.data) == self.handler.bind(self.data))
        return False

    def __str__(self) -> str:
        words = [f"type {self.type!r}"]
        if self.queue is not None:
            words.append(f"queue {self.queue!r}")
        if self.data is not ANY:
            words.append(f"data {self.data!r}")
        return ", ".join(words)


def expected(job_type: Handler[..., Any] | str, *, data: object, queue: str | None) -> Expected:
    """`data` as the queue would store it, so that models, dates and decimals can be given as they are.

    Where a handler with a model is given, its model compares.
    """
    handler = job_type if isinstance(job_type, Handler) else None
    name = job_type if handler is None else handler.type
    return Expected(str(name), queue, data if data is ANY else decode_any(encode(data)), handler)


def complaint(wanted: Expected, count: int | None, found: int, jobs: Sequence[Job]) -> str:
    number = "no job" if count is None else f"{found} instead of {count} jobs"
    lines = [f"{number} enqueued with {wanted}"]
    lines += [f"  {job.type} in {job.queue}: {job.data!r} ({job.status})" for job in jobs[:_SHOWN]]
    if len(jobs) > _SHOWN:
        lines.append(f"  and {len(jobs) - _SHOWN} more")
    return "\n".join(lines if jobs else [*lines, "  the queue is empty"])
