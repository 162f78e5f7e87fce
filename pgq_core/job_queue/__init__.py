"""The queue for producers and for loops of one's own: JobQueue and its asynchronous face."""

from __future__ import annotations

from pgq_core.job_queue.answers import (
    CancelAnswer,
    DeadLetterReport,
    FailedJob,
    JobReport,
    JobState,
    Lease,
    RunReport,
)
from pgq_core.job_queue.async_queue import AsyncJobQueue
from pgq_core.job_queue.request import EnqueuedJob, JobRequest
from pgq_core.job_queue.sync_queue import JobQueue

__all__ = [
    "JobQueue",
    "AsyncJobQueue",
    "JobRequest",
    "EnqueuedJob",
    "Lease",
    "FailedJob",
    "CancelAnswer",
    "JobState",
    "JobReport",
    "RunReport",
    "DeadLetterReport",
]
