"""The last thing done for a dead runner: its jobs go back and its end is written down, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.domain.text import storable
from pgq_core.logs import get_logger
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob
from pgq_core.queries.closing import Closing, close_runs
from pgq_core.queries.orphans import OrphanRow
from pgq_core.queries.piecemeal import write_what_can_be
from pgq_core.worker.exits import ExitKind
from pgq_core.worker.handle import Intent, RunnerHandle
from pgq_core.worker.marks import Mark
from pgq_core.worker.protocol import RunnerExitCode
from pgq_core.worker.rescue import Blame, rescue_of


class Burial:
    """`write` may be repeated: it is one transaction, and its writes are guarded."""

    def __init__(self, queries: Queries, handle: RunnerHandle, marks: list[Mark], *, random: Random) -> None:
        if handle.exit is None:
            raise ValueError(f"{handle!r} lives")
        self._queries = queries
        self._handle = handle
        self._exit = handle.exit
        self._marks = marks
        self._random = random
        self._died_ns = time.monotonic_ns()
        self._logger = get_logger("pgq.keeper", worker_id=handle.worker_id)

    @staticmethod
    def of_unborn(queries: Queries, worker_id: str, reason: str) -> Callable[[AsyncConnection[Any]], Awaitable[int]]:
        """A worker that was registered and whose process could not be started."""
        return queries.end_worker(
            worker_id=worker_id,
            state="crashed",
            exit_code=None,
            exit_signal=None,
            exit_reason=f"its process could not be started: {reason}",
            last_output=None,
            finished=0,
            failed=0,
            late_writes=0,
        ).execute

    async def write(self, conn: AsyncConnection[Any]) -> None:
        try:
            await self._write_where_free(conn, has_partitions=False)
        except psycopg.errors.CheckViolation:  # perhaps no partition for the day one of its jobs started
            await self._queries.ensure_partitions(days_ahead=1).execute(conn)
            await self._write_where_free(conn, has_partitions=True)

    async def _write_where_free(self, conn: AsyncConnection[Any], *, has_partitions: bool) -> None:
        """A statement of the dead that is still under way is waited for, a stranger's lock is not."""
        queries, worker_id = self._queries, self._handle.worker_id
        try:
            await self._write(conn, queries.lock_claims_of_worker(worker_id=worker_id), has_partitions=has_partitions)
        except psycopg.errors.LockNotAvailable:
            claims = queries.lock_free_claims_of_worker(worker_id=worker_id)
            await self._write(conn, claims, has_partitions=has_partitions)

    async def _write(self, conn: AsyncConnection[Any], claims: Statement[OrphanRow], *, has_partitions: bool) -> None:
        async with conn.transaction():
            orphans = await claims.fetch_all(conn)
            rescue = rescue_of(
                orphans,
                self._marks,
                blame=self._blame(),
                words=self._words(),
                monotonic_ns=self._died_ns,
                random=self._random,
            )
            release = partial(self._release, conn)
            unreleased = await write_what_can_be(conn, rescue.released, release, has_partitions=has_partitions)
            closed, unclosed = await close_runs(
                conn,
                self._queries,
                [*rescue.rescheduled, *rescue.buried],
                slot=self._handle.slot,
                has_partitions=has_partitions,
            )
            await self._record_end(conn)
        refused = [(job_id, error) for (job_id, _), error in unreleased]
        for job_id, error in [*refused, *((write.id, error) for write, error in unclosed)]:
            # Left to the reaper, which tries again from time to time.
            self._logger.error("job_not_given_back", job_id=job_id, error=first_line(error))
        self._log(closed, len(rescue.released) - len(unreleased))

    async def _release(self, conn: AsyncConnection[Any], claims: Sequence[tuple[int, int]]) -> None:
        await self._queries.release_jobs(claims).execute(conn)

    async def _record_end(self, conn: AsyncConnection[Any]) -> None:
        _, finished, failed, late_writes = self._handle.counters()
        statement = self._queries.end_worker(
            worker_id=self._handle.worker_id,
            state="crashed" if self._exit.kind.is_fault else "stopped",
            exit_code=self._exit.code,
            exit_signal=self._exit.signal,
            exit_reason=storable(self._exit.reason, limit=2000),
            last_output=storable("\n".join(self._exit.last_output)) or None,
            finished=finished,
            failed=failed,
            late_writes=late_writes,
        )
        await statement.execute(conn)

    def _blame(self) -> Blame:
        if self._exit.kind is ExitKind.CRASHED:
            return Blame.JOBS
        return Blame.OVERDUE if self._handle.intent is Intent.OVERDUE else Blame.NOBODY

    def _words(self) -> str:
        """Without the worker's id, which the run carries: equal failures have to look equal."""
        if self._exit.kind is not ExitKind.CRASHED or self._exit.code == RunnerExitCode.SPOILED:
            return self._exit.reason
        return f"worker died: {self._exit.signal or f'exit code {self._exit.code}'}"

    def _log(self, closed: Sequence[Closing], released: int) -> None:
        for write in closed:
            if isinstance(write, BuriedJob):
                self._logger.error("job_dead", job_id=write.id, error=write.error, reason=str(write.reason))
            else:
                self._logger.warning("job_given_back", job_id=write.id, outcome=str(write.outcome), error=write.error)
        if released:
            self._logger.info("jobs_handed_back", count=released)
