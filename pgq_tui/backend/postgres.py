"""The backend that looks at a real database: two connections that only read, one that writes when somebody acts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

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
from pgq_core.errors import ReadOnlyRefused
from pgq_core.inspector import Inspector
from pgq_core.migrate import check_schema_async
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from pgq_core.queries.lists import ABOVE_ALL_IDS
from pgq_core.runtime import find_schema
from pgq_tui.backend.lane import Check, Lane, T, Work
from pgq_tui.backend.protocol import PAGE_SIZE

READ_SECONDS = 2.0
ANSWER_SECONDS = 6.0
WRITE_SECONDS = 15.0
_APPLICATION = "pgq-tui"


class PostgresBackend:
    """Implements `Backend`. Ticks and look-ups have a connection each, so that a slow tick never delays a detail."""

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "pgq_core",
        may_look_elsewhere: bool = False,
        stale_limit: float = 30.0,
        operator: str | None = None,
        read_only: bool = False,
        address: str | None = None,
    ) -> None:
        self.url = dsn
        self.is_read_only = read_only
        self.address = address or shown_address(dsn)
        self._stale_limit = timedelta(seconds=stale_limit)
        self._operator = operator
        self._may_look_elsewhere = may_look_elsewhere
        self._use_schema(schema)
        self._ticks = _reading_lane(dsn, self._check)
        self._lookups = _reading_lane(dsn, self._check)
        self._writes = Lane(dsn, self._check, application_name=_APPLICATION, statement_timeout=WRITE_SECONDS)

    def _use_schema(self, schema: str) -> None:
        queries = Queries(schema)
        self.schema = schema
        self._inspector = Inspector(queries, stale_limit=self._stale_limit)
        self._operations = Operations(queries, operator=self._operator)

    async def _check(self, conn: AsyncConnection[Any]) -> None:
        """Each new connection is asked: the window is open long before the database has answered."""
        if self._may_look_elsewhere:
            schema = await find_schema(conn, self.schema)
            if schema != self.schema:
                self._use_schema(schema)
        await check_schema_async(conn, self.schema)
        self._may_look_elsewhere = False

    async def find_schema(self) -> str:
        """The schema that holds the tables; raises DatabaseUnavailable while nobody can tell."""

        async def named(_: AsyncConnection[Any]) -> str:
            return self.schema

        return await self._lookups.read(named)

    async def close(self) -> None:
        for lane in (self._ticks, self._lookups, self._writes):
            await lane.close()

    # Ticks.

    async def overview(self, window: timedelta) -> Overview:
        return await self._ticks.read(lambda conn: self._inspector.overview(conn, window))

    async def latest_runs(self, limit: int, filters: RunFilters) -> tuple[RunView, ...]:
        return await self._ticks.read(lambda conn: self._inspector.latest_runs(conn, limit, filters))

    async def runs_after(
        self, run_id: int, seen: Collection[int], limit: int, filters: RunFilters
    ) -> tuple[RunView, ...]:
        return await self._ticks.read(lambda conn: self._inspector.runs_after(conn, run_id, limit, filters, seen=seen))

    async def running_jobs(self, filters: RunFilters, limit: int) -> tuple[RunningView, ...]:
        return await self._ticks.read(
            lambda conn: self._inspector.running_jobs(
                conn, worker_id=filters.worker_id, queue=filters.queue, job_type=filters.job_type, limit=limit
            )
        )

    async def jobs(self, filters: JobFilters, after: JobCursor | None = None) -> JobPage:
        return await self._ticks.read(lambda conn: self._inspector.jobs(conn, filters, limit=PAGE_SIZE, after=after))

    async def dead_letters(self, filters: DeadLetterFilters, before: int | None = None) -> tuple[DeadLetterView, ...]:
        below = ABOVE_ALL_IDS if before is None else before
        return await self._ticks.read(
            lambda conn: self._inspector.dead_letters(conn, filters, limit=PAGE_SIZE, before=below)
        )

    async def count_dead_letters(self, filters: DeadLetterFilters) -> Count:
        return await self._ticks.read(lambda conn: self._inspector.count_dead_letters(conn, filters))

    async def dead_groups(self) -> tuple[DeadGroup, ...]:
        # Not the bound method: the inspector may be another one once the schema is known.
        return await self._ticks.read(lambda conn: self._inspector.dead_groups(conn))  # noqa: PLW0108

    # Look-ups.

    async def run(self, run_id: int) -> RunDetail | None:
        return await self._lookups.read(lambda conn: self._inspector.run(conn, run_id))

    async def job(self, job_id: int) -> JobRecord | None:
        return await self._lookups.read(lambda conn: self._inspector.job_record(conn, job_id))

    async def dead_letter(self, letter_id: int) -> DeadLetterDetail | None:
        return await self._lookups.read(lambda conn: self._inspector.dead_letter(conn, letter_id))

    async def preview_dead_letters(self, filters: DeadLetterFilters, limit: int) -> Preview:
        return await self._lookups.read(lambda conn: self._operations.preview(conn, filters, limit=limit))

    async def worker_output(self, worker_id: str) -> str | None:
        return await self._lookups.read(lambda conn: self._inspector.worker_output(conn, worker_id))

    async def operations(self, limit: int) -> tuple[OperationView, ...]:
        return await self._lookups.read(lambda conn: self._inspector.operations(conn, limit=limit))

    # Verbs.

    async def pause(self, queue: str, reason: str | None) -> ActionResult:
        return await self._write(lambda conn: self._operations.pause(conn, queue, reason))

    async def resume(self, queue: str) -> ActionResult:
        return await self._write(lambda conn: self._operations.resume(conn, queue))

    async def set_audit(self, queue: str, rule: AuditRule) -> ActionResult:
        return await self._write(lambda conn: self._operations.set_audit(conn, queue, rule.audit, share=rule.share))

    async def replay(self, letter_ids: Sequence[int]) -> BulkResult:
        return await self._write(lambda conn: self._operations.replay(conn, letter_ids))

    async def discard(self, letter_ids: Sequence[int]) -> BulkResult:
        return await self._write(lambda conn: self._operations.discard(conn, letter_ids))

    async def undo(self, operation_id: int) -> BulkResult:
        return await self._write(lambda conn: self._operations.undo(conn, operation_id))

    async def cancel(self, job_ids: Sequence[int]) -> BulkResult:
        return await self._write(lambda conn: self._operations.cancel(conn, job_ids))

    async def scale(self, host: str, pool: str, wanted: int) -> ActionResult:
        return await self._write(lambda conn: self._operations.scale(conn, host, pool, wanted))

    async def scale_by(self, host: str, pool: str, change: int) -> ActionResult:
        return await self._write(lambda conn: self._operations.scale_by(conn, host, pool, change))

    async def drain_worker(self, worker_id: str) -> ActionResult:
        return await self._write(lambda conn: self._operations.drain_worker(conn, worker_id))

    async def restart_worker(self, worker_id: str) -> ActionResult:
        return await self._write(lambda conn: self._operations.restart_worker(conn, worker_id))

    async def _write(self, work: Work[T]) -> T:
        if self.is_read_only:
            raise ReadOnlyRefused
        return await self._writes.write(work)


def _reading_lane(dsn: str, check: Check) -> Lane:
    return Lane(
        dsn,
        check,
        application_name=_APPLICATION,
        statement_timeout=READ_SECONDS,
        read_only=True,
        answer_within=ANSWER_SECONDS,
    )


def shown_address(dsn: str) -> str:
    """Who, where and which database, without a password.

    >>> shown_address("postgresql://app:secret@db-1:6432/jobs"), shown_address("host=/tmp/sock dbname=jobs user=app")
    ('app@db-1:6432/jobs', 'app@local/jobs')
    """
    parts = conninfo_to_dict(dsn)
    host = str(parts.get("host") or "local")
    where = "local" if host.startswith(("/", "@")) else host
    if (port := parts.get("port")) and where != "local" and str(port) != "5432":
        where += f":{port}"
    user = f"{parts['user']}@" if parts.get("user") else ""
    return f"{user}{where}/{parts.get('dbname') or parts.get('user') or ''}"
