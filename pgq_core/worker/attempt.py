"""One run of one claimed job, on its way through the corridor."""

from __future__ import annotations

from concurrent.futures import Future
from enum import StrEnum
from typing import Any

from pgq_core.domain.job import JSON, Job
from pgq_core.domain.payload import Unreadable
from pgq_core.handlers import Failure, Handler
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.worker.context import JobContext

Write = FinishedJob | RescheduledJob | BuriedJob


class Verdict(StrEnum):
    """What was decided about an attempt while it ran."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"  # its worker leaves
    DROP = "drop"  # its worker was fenced: nothing may be written any more


class Attempt:
    """Mutable and small: one is made per job, on the hot path."""

    __slots__ = (
        "_job",
        "context",
        "deadline",
        "failure",
        "finished",
        "future",
        "handler",
        "has_returned",
        "is_noted",
        "is_settled",
        "is_simplified",
        "is_written",
        "limit",
        "mark",
        "row",
        "started",
        "verdict",
        "write",
    )

    def __init__(self, row: ClaimedRow, handler: Handler[..., Any]) -> None:
        self.row = row
        self.handler = handler
        self.mark = -1
        """Index of its mark in the shared memory."""
        self.started = 0.0
        self.finished = 0.0
        self.deadline = 0.0
        """Monotonic time of its limit; 0 = none."""
        self.limit = 0.0
        """Longest time it may run, in seconds; 0 = none."""
        self.verdict: Verdict | None = None
        self.has_returned = False
        """Its thread is through with it."""
        self.is_noted = False
        """Its long transaction was warned about."""
        self.is_settled = False
        """Its outcome is decided: whatever its code still does no longer counts."""
        self.write: Write | None = None
        self.is_simplified = False
        """The database would not take its outcome as it was."""
        self.is_written = False
        """Its outcome was committed in its own transaction."""
        self.failure: Failure | None = None
        self.context: JobContext | None = None
        self.future: Future[Any] | None = None
        """The thread in which a plain function runs inside middleware."""
        self._job: Job | None = None

    @property
    def job(self) -> Job:
        if self._job is None:
            self._job = self.row.to_job()
        return self._job

    @property
    def data(self) -> JSON:
        payload = self.row.payload
        return payload if isinstance(payload, Unreadable) else payload.get("data", {})

    def is_in_thread(self) -> bool:
        """Whether a thread that middleware waited for still works on it."""
        return self.future is not None and not self.future.done()

    def stop(self, verdict: Verdict) -> bool:
        """The first verdict stands; answers whether this is it."""
        if self.verdict is not None:
            return False
        self.verdict = verdict
        if self.context is not None:
            self.context.cancelled.set()
        return True
