"""One run of one claimed job, on its way through the corridor."""

from __future__ import annotations

from concurrent.futures import Future
from enum import StrEnum
from typing import Any, Final

from pgq_core.domain.job import Job
from pgq_core.handlers import Failure, Handler
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.worker.context import JobContext


class PlainSuccess:
    """It succeeded and said nothing: there is nothing to write but its times, which the attempt has."""


PLAIN_SUCCESS: Final = PlainSuccess()
SpelledOut = FinishedJob | RescheduledJob | BuriedJob
Write = PlainSuccess | SpelledOut


class Verdict(StrEnum):
    """What was decided about an attempt while it ran."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"  # its worker leaves
    DROP = "drop"  # its worker was fenced: nothing may be written any more


class Attempt:
    """Mutable and small: one is made per job, on the hot path. What is rare stays on the class until it happens."""

    started = 0.0
    finished = 0.0
    deadline = 0.0
    """Monotonic time of its limit; 0 = none."""
    verdict: Verdict | None = None
    has_returned = False
    """Its thread is through with it."""
    is_noted = False
    """Its long transaction was warned about."""
    is_settled = False
    """Its outcome is decided: whatever its code still does no longer counts."""
    write: Write | None = None
    is_simplified = False
    """The database would not take its outcome as it was."""
    is_written = False
    """Its outcome was committed in its own transaction."""
    failure: Failure | None = None
    context: JobContext | None = None
    future: Future[Any] | None = None
    """The thread in which a plain function runs inside middleware."""
    _job: Job | None = None

    def __init__(self, row: ClaimedRow, handler: Handler[..., Any], mark: int, limit: float) -> None:
        """`mark`: index of its mark in the shared memory. `limit`: longest time it may run, in seconds; 0 = none."""
        self.row = row
        self.handler = handler
        self.mark = mark
        self.limit = limit

    @property
    def job(self) -> Job:
        if self._job is None:
            self._job = self.row.to_job()
        return self._job

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
