"""What a handler finds as `context`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from structlog.typing import FilteringBoundLogger

from pgq_core.domain.job import Job
from pgq_core.handlers import Resources
from pgq_core.logs import get_logger


@dataclass(slots=True)
class JobContext:
    """For one run: its job, the resources that `on_startup` made, and whether it was asked to stop.

    A coroutine that is asked to stop gets CancelledError at its next await; a plain function has to look at
    `cancelled` (`context.cancelled.is_set()`, or `context.cancelled.wait(5)` in place of a sleep).
    """

    job: Job
    resources: Resources
    worker_id: str
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when an operator cancels the job, when its time limit has passed, and when its worker has to leave."""

    @property
    def log(self) -> FilteringBoundLogger:
        """A logger whose lines carry the job."""
        return get_logger(
            "app",
            worker_id=self.worker_id,
            job_id=self.job.id,
            job_type=self.job.type,
            queue=self.job.queue,
            attempt=self.job.attempt,
        )
