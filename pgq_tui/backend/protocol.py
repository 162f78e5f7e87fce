"""What the console asks of the world. Screens know this protocol and nothing behind it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

from pgq_core.domain.audit import AuditRule
from pgq_core.domain.filters import DeadLetterFilters, JobFilters, RunFilters
from pgq_core.domain.operation import ActionResult, BulkResult, OperationView, Preview
from pgq_core.domain.snapshot import (
    Count,
    DeadGroup,
    DeadLetterDetail,
    DeadLetterView,
    JobCursor,
    JobPage,
    JobRecord,
    Overview,
    RunDetail,
    RunningView,
    RunView,
)

PAGE_SIZE = 200
"""Rows of one page: more than a screen shows, little enough for one short statement."""


class Backend(Protocol):
    """Reads answer immutable values. Everything raises DatabaseUnavailable while the database is away (and works again
    by itself afterwards), SchemaError when the database does not fit, PgqError with a sentence for all else.

    Verbs answer only after the effect is committed. A verb that raises DatabaseUnavailable may have been applied.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether verbs are refused, whatever the database would allow."""

    @property
    def address(self) -> str:
        """`user@host/database` without a password, for the header."""

    @property
    def url(self) -> str:
        """The whole address, for the clipboard of the operator."""

    async def close(self) -> None:
        """Give all connections back; what is under way is abandoned."""

    async def overview(self, window: timedelta) -> Overview:
        """Queues, workers, pools, and the throughput of the window."""

    async def latest_runs(self, limit: int, filters: RunFilters) -> tuple[RunView, ...]:
        """The last closed runs, newest first."""

    async def runs_after(
        self, run_id: int, seen: Collection[int], limit: int, filters: RunFilters
    ) -> tuple[RunView, ...]:
        """Closed runs that appeared since this one, oldest first; late commits are among them, `seen` ones are not."""

    async def running_jobs(self, filters: RunFilters, limit: int) -> tuple[RunningView, ...]:
        """What runs now, longest running first."""

    async def run(self, run_id: int) -> RunDetail | None: ...

    async def jobs(self, filters: JobFilters, after: JobCursor | None = None) -> JobPage: ...

    async def job(self, job_id: int) -> JobRecord | None: ...

    async def dead_letters(self, filters: DeadLetterFilters, before: int | None = None) -> tuple[DeadLetterView, ...]:
        """One page, newest first, below an id."""

    async def count_dead_letters(self, filters: DeadLetterFilters) -> Count: ...

    async def dead_groups(self) -> tuple[DeadGroup, ...]:
        """Unresolved dead letters by kind of failure, the largest group first."""

    async def dead_letter(self, letter_id: int) -> DeadLetterDetail | None: ...

    async def preview_dead_letters(self, filters: DeadLetterFilters, limit: int) -> Preview:
        """All unresolved dead letters that match: what "all matching" means at this moment."""

    async def worker_output(self, worker_id: str) -> str | None:
        """The last lines the worker wrote; None when nothing was kept."""

    async def operations(self, limit: int) -> tuple[OperationView, ...]:
        """What operators did, newest first, whoever they were."""

    async def pause(self, queue: str, reason: str | None) -> ActionResult: ...

    async def resume(self, queue: str) -> ActionResult: ...

    async def set_audit(self, queue: str, rule: AuditRule) -> ActionResult: ...

    async def replay(self, letter_ids: Sequence[int]) -> BulkResult: ...

    async def discard(self, letter_ids: Sequence[int]) -> BulkResult: ...

    async def undo(self, operation_id: int) -> BulkResult: ...

    async def cancel(self, job_ids: Sequence[int]) -> BulkResult: ...

    async def scale(self, host: str, pool: str, wanted: int) -> ActionResult: ...

    async def scale_by(self, host: str, pool: str, change: int) -> ActionResult:
        """So many workers more or fewer than wanted now, whoever pressed what in between."""

    async def drain_worker(self, worker_id: str) -> ActionResult: ...

    async def restart_worker(self, worker_id: str) -> ActionResult: ...
