"""A job queue on PostgreSQL and nothing else.

```python
from pgq_core import JobQueue, handler

@handler("send_email")
def send_email(data: dict) -> None: ...

with JobQueue("postgresql://localhost/app") as queue:
    queue.enqueue("send_email", {"to": "a@example.org"}, idempotency_key="welcome-1")
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the names below, for type checkers; at run time each is imported when it is first asked for
    from pgq_core.domain.job import JSON, Job, JobStatus, Outcome
    from pgq_core.domain.outcome import Cancel, Discard, NonRetryable, Retry, Snooze
    from pgq_core.domain.retry import RetryPolicy
    from pgq_core.errors import (
        ClaimLost,
        DatabaseUnavailable,
        InvalidJob,
        InvalidPayload,
        JobFailed,
        JobNotFound,
        KeyConflict,
        MalformedData,
        PgqError,
        ResultNotReady,
    )
    from pgq_core.handlers import Handler, Registry, handler, load_app, middleware, on_shutdown, on_startup
    from pgq_core.job_queue import (
        AsyncJobQueue,
        CancelAnswer,
        EnqueuedJob,
        FailedJob,
        JobQueue,
        JobReport,
        JobRequest,
        JobState,
        Lease,
    )
    from pgq_core.worker.context import JobContext

__all__ = [
    "JobQueue",
    "AsyncJobQueue",
    "JobRequest",
    "EnqueuedJob",
    "JobReport",
    "JobState",
    "CancelAnswer",
    "Lease",
    "FailedJob",
    "handler",
    "on_startup",
    "on_shutdown",
    "middleware",
    "Handler",
    "Registry",
    "load_app",
    "Job",
    "JobContext",
    "JobStatus",
    "Outcome",
    "JSON",
    "Retry",
    "Snooze",
    "Discard",
    "Cancel",
    "NonRetryable",
    "RetryPolicy",
    "PgqError",
    "DatabaseUnavailable",
    "InvalidPayload",
    "MalformedData",
    "InvalidJob",
    "KeyConflict",
    "ClaimLost",
    "JobNotFound",
    "JobFailed",
    "ResultNotReady",
    "__version__",
]

_HOMES = {
    "pgq_core.job_queue": (
        "JobQueue AsyncJobQueue JobRequest EnqueuedJob JobReport JobState CancelAnswer Lease FailedJob"
    ),
    "pgq_core.handlers": "handler on_startup on_shutdown middleware Handler Registry load_app",
    "pgq_core.worker.context": "JobContext",
    "pgq_core.domain.job": "Job JobStatus Outcome JSON",
    "pgq_core.domain.outcome": "Retry Snooze Discard Cancel NonRetryable",
    "pgq_core.domain.retry": "RetryPolicy",
    "pgq_core.errors": (
        "PgqError DatabaseUnavailable InvalidPayload MalformedData InvalidJob KeyConflict ClaimLost JobNotFound"
        " JobFailed ResultNotReady"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Imports a public name, or looks the version up, when first asked: `import pgq_core` alone costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("pgq-tui")
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
