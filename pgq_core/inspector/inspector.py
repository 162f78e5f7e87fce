"""What an operator wants to see. Every method takes the connection it reads on; errors of the driver pass through."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, assert_never

from psycopg import AsyncConnection

from pgq_core.domain.filters import ALL_JOBS, ALL_RUNS, UNRESOLVED, DeadLetterFilters, JobFilters, RunFilters
from pgq_core.domain.job import JobStatus
from pgq_core.domain.operation import OperationDetail, OperationView
from pgq_core.domain.snapshot import (
    DEPTH_CAP,
    Count,
    DeadGroup,
    DeadLetterDetail,
    DeadLetterView,
    JobCursor,
    JobPage,
    JobRecord,
    JobView,
    Overview,
    RunDetail,
    RunningView,
    RunView,
)
from pgq_core.domain.window import WINDOWS
from pgq_core.inspector.overview import OverviewReader
from pgq_core.queries import Queries, Statement
from pgq_core.queries.lists import ABOVE_ALL_IDS

SEARCH_REACH = 50_000
"""Rows that a filtered list looks at before it gives up: the newest ones, or the next to run."""

LATE_COMMITS = 500
"""Run ids below the last one seen that are looked at again: an id is taken before the commit, so runs appear late."""

MOST_GROUPS = 200
MOST_RUNS_OF_A_JOB = 200
PAYLOAD_LIMIT = 64 * 1024


class Inspector:
    """The read side. It remembers what `overview` has read of statistics: keep one for as long as you keep looking."""

    def __init__(self, queries: Queries, *, stale_limit: timedelta = timedelta(seconds=30)) -> None:
        self._queries = queries
        self._stale_limit = stale_limit
        self._overview = OverviewReader(queries, stale_limit)

    async def overview(self, conn: AsyncConnection[Any], window: timedelta = WINDOWS["15m"]) -> Overview:
        """One tick of the dashboard; `window` is the span of its throughput chart."""
        return await self._overview.read(conn, window)

    async def latest_runs(
        self,
        conn: AsyncConnection[Any],
        limit: int,
        filters: RunFilters = ALL_RUNS,
        *,
        before: int = ABOVE_ALL_IDS,
    ) -> tuple[RunView, ...]:
        """Newest first; `before` is the last id of the page before. Filters search the newest 50,000 runs."""
        if filters.job_id is not None:
            return tuple(await self._queries.list_runs_of_job(job_id=filters.job_id, limit=limit).fetch_all(conn))
        statement = self._queries.list_runs(filters, before=before, reach=SEARCH_REACH, limit=limit)
        return tuple(await statement.fetch_all(conn))

    async def runs_after(
        self,
        conn: AsyncConnection[Any],
        run_id: int,
        limit: int,
        filters: RunFilters = ALL_RUNS,
        *,
        seen: Collection[int] = (),
    ) -> tuple[RunView, ...]:
        """Runs that were closed since `run_id`, oldest first, and those a little below it whose commit came late.

        `seen`: ids the caller has shown already (`domain.tail.RunTail` keeps them). When more than `limit` came in, the
        oldest are left out.
        """
        after = max(run_id - LATE_COMMITS, 0)
        runs = await self._queries.list_runs_after(filters, after=after, seen=seen, limit=limit).fetch_all(conn)
        return tuple(reversed(runs))

    async def run(self, conn: AsyncConnection[Any], run_id: int) -> RunDetail | None:
        row = await self._queries.read_run(run_id=run_id, limit=PAYLOAD_LIMIT).fetch_one(conn)
        return row.to_detail() if row else None

    async def running_jobs(
        self,
        conn: AsyncConnection[Any],
        *,
        worker_id: str | None = None,
        queue: str | None = None,
        job_type: str | None = None,
        limit: int = 500,
    ) -> tuple[RunningView, ...]:
        """What runs now, longest first."""
        statement = self._queries.list_running_jobs(
            worker_id=worker_id, queue=queue, job_type=job_type, stale_limit=self._stale_limit, limit=limit
        )
        return tuple(await statement.fetch_all(conn))

    async def jobs(
        self,
        conn: AsyncConnection[Any],
        filters: JobFilters = ALL_JOBS,
        *,
        limit: int = 200,
        after: JobCursor | None = None,
    ) -> JobPage:
        """A page of live jobs: in the order they will run where a status is asked for, else newest first."""
        jobs = await self._list_of_jobs(filters, limit, after).fetch_all(conn)
        return JobPage(tuple(jobs), _cursor(jobs[-1]) if len(jobs) == limit else None)

    async def job_record(self, conn: AsyncConnection[Any], job_id: int) -> JobRecord | None:
        """Everything known about one job, in every state; None when no table knows it (any more)."""
        row = await self._queries.read_job_row(
            job_id=job_id, stale_limit=self._stale_limit, limit=PAYLOAD_LIMIT
        ).fetch_one(conn)
        live = row.to_live_job() if row else None
        runs = await self._queries.list_runs_of_job(job_id=job_id, limit=MOST_RUNS_OF_A_JOB).fetch_all(conn)
        letters = await self._queries.list_letters_of_job(job_id=job_id).fetch_all(conn)
        if not (live or runs or letters):
            return None
        if live:
            state, replayed_from = live.job.status, live.replayed_from
        elif letters:
            state, replayed_from = "dead", letters[0].replayed_from
        else:
            state, replayed_from = runs[0].outcome, runs[0].replayed_from
        return JobRecord(job_id, state, live, tuple(runs), tuple(letters), replayed_from)

    async def dead_letters(
        self,
        conn: AsyncConnection[Any],
        filters: DeadLetterFilters = UNRESOLVED,
        *,
        limit: int = 200,
        before: int = ABOVE_ALL_IDS,
    ) -> tuple[DeadLetterView, ...]:
        """Newest first; `before`: the last id of the page before. Text and type are searched in the newest 50,000."""
        statement = self._queries.list_dead_letters(filters, before=before, reach=SEARCH_REACH, limit=limit)
        return tuple(await statement.fetch_all(conn))

    async def count_dead_letters(self, conn: AsyncConnection[Any], filters: DeadLetterFilters = UNRESOLVED) -> Count:
        """Exact up to 10,000, "at least" above. Text, type, reason and dates are searched in the newest 50,000."""
        statement = self._queries.count_dead_letters(
            filters, before=ABOVE_ALL_IDS, reach=SEARCH_REACH, limit=DEPTH_CAP + 1
        )
        counted = await statement.fetch_one(conn) or 0
        return Count(min(counted, DEPTH_CAP), exact=counted <= DEPTH_CAP)

    async def dead_groups(self, conn: AsyncConnection[Any]) -> tuple[DeadGroup, ...]:
        """Unresolved dead letters by kind of failure, largest group first."""
        rows = await self._queries.list_dead_groups(cap=DEPTH_CAP, most=MOST_GROUPS).fetch_all(conn)
        return tuple(row.to_group(DEPTH_CAP) for row in rows)

    async def dead_letter(
        self, conn: AsyncConnection[Any], dead_letter_id: int, *, payload_limit: int = PAYLOAD_LIMIT
    ) -> DeadLetterDetail | None:
        row = await self._queries.read_dead_letter(dead_letter_id=dead_letter_id, limit=payload_limit).fetch_one(conn)
        return row.to_detail() if row else None

    async def exported_dead_letters(self, conn: AsyncConnection[Any], ids: Sequence[int]) -> list[str]:
        """One JSON document per dead letter, payloads to the digit, for `Operations.import_letters`."""
        return await self._queries.export_dead_letters(ids).fetch_all(conn)

    async def worker_output(self, conn: AsyncConnection[Any], worker_id: str) -> str | None:
        """The last lines a worker wrote, as far as its keeper recorded them; None for an unknown worker."""
        return await self._queries.read_worker_output(worker_id=worker_id).fetch_one(conn)

    async def operations(
        self, conn: AsyncConnection[Any], *, limit: int = 200, before: int = ABOVE_ALL_IDS
    ) -> tuple[OperationView, ...]:
        """What operators did, newest first."""
        return tuple(await self._queries.list_operations(before=before, limit=limit).fetch_all(conn))

    async def operation(self, conn: AsyncConnection[Any], operation_id: int) -> OperationDetail | None:
        row = await self._queries.read_operation(operation_id=operation_id).fetch_one(conn)
        return row.to_detail() if row else None

    def _list_of_jobs(self, filters: JobFilters, limit: int, after: JobCursor | None) -> Statement[JobView]:
        status = None if filters.status is None else JobStatus(filters.status)
        before = after.id if after else ABOVE_ALL_IDS
        common: dict[str, Any] = {
            "queue": filters.queue,
            "job_type": filters.job_type,
            "stale_limit": self._stale_limit,
            # Without a filter on the type every row counts: then no more than the page has to be walked (and sorted).
            "reach": SEARCH_REACH if filters.job_type else limit,
            "limit": limit,
        }
        match status:
            case None:
                return self._queries.list_jobs(before=before, **common)
            case JobStatus.RUNNING:
                return self._queries.list_claimed_jobs(before=before, **common)
            case JobStatus.PENDING:
                return self._queries.list_pending_jobs(after=after, **common)
            case JobStatus.SCHEDULED:
                return self._queries.list_scheduled_jobs(after=after, **common)
            case JobStatus.WAITING:
                return self._queries.list_waiting_jobs(after=after, **common)
            case _:
                assert_never(status)


def _cursor(job: JobView) -> JobCursor:
    return JobCursor(job.id, job.queue, job.priority, job.not_before, job.waiting_for)
