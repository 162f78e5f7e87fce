"""Writes a batch of outcomes on a connection of its own: one statement per kind of outcome."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection, sql

from pgq_core.database import LOCK_LIMIT, connect, is_missing_partition, is_pooled
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.queries.wire import fetch_quickly
from pgq_core.sql import schema_statement
from pgq_core.worker.attempt import Attempt, Verdict
from pgq_core.worker.batch import Batch
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.job_log import JobLog
from pgq_core.worker.marks import Marks

HASTY_LOCK_LIMIT: Final = 0.1
"""Seconds that a write waits for a lock where others that need none would wait with it."""

_JOB_ID: Final = attrgetter("row.id")

T = TypeVar("T")


class Writer:
    """`on_written` gets the attempts whose outcome is final, written or refused."""

    def __init__(
        self,
        dsn: str,
        queries: Queries,
        marks: Marks,
        clock: DatabaseClock,
        log: JobLog,
        *,
        worker_id: str,
        slot: int,
        on_written: Callable[[Sequence[Attempt]], None],
        on_retry: Callable[[float], None],
    ) -> None:
        self._dsn = dsn
        self._queries = queries
        self._marks = marks
        self._clock = clock
        self._log = log
        self._worker_id = worker_id
        self._slot = slot
        self._on_written = on_written
        self._on_retry = on_retry
        self._conn: AsyncConnection[Any] | None = None
        self._opening = asyncio.Lock()
        self._hasty: AsyncConnection[Any] | None = None
        """The connection whose limit for locks is the short one."""

    async def connection(self) -> AsyncConnection[Any]:
        """The open connection; statements of several tasks wait for each other on it."""
        if self._conn is None or self._conn.closed:
            async with self._opening:  # one for all who wait
                return await self._open_unless_another_has()
        return self._conn

    async def _open_unless_another_has(self) -> AsyncConnection[Any]:
        if self._conn is None or self._conn.closed:
            self._conn = await connect(
                self._dsn, application_name="pgq worker: finish", pinned_plans=True, lock_limit=LOCK_LIMIT
            )
        return self._conn

    async def drop(self) -> None:
        """The next call opens another connection."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):  # it may be broken in any way
                await conn.close()

    async def with_data(self, row: ClaimedRow) -> ClaimedRow | None:
        """The row with the data that its claim left behind. None when the job is no longer ours."""
        statement = self._queries.read_claimed_data(job_id=row.id, token=row.claim_token)
        found = await statement.fetch_all(await self.connection())
        return row._replace(data=found[0]) if found else None

    async def locked(self, job_ids: Sequence[int]) -> set[int]:
        """Those of these jobs whose rows somebody has locked at this moment."""
        return set(await self._queries.list_locked_jobs(job_ids).fetch_all(await self.connection()))

    async def write(self, batch: Batch, *, in_haste: bool = False) -> None:
        """One statement per kind of outcome; each empties its part of the batch when it is through.

        `in_haste`: gives up soon where it meets a lock. Raises what the database raises, with what is still to be
        written left in the batch.
        """
        await self._limit_locks(in_haste=in_haste)
        if batch.succeeded:
            await self._finish_plainly(batch)
        if batch.finished:
            await self._finish(batch)
        if batch.rescheduled:
            await self._reschedule(batch)
        if batch.letters:
            await self._bury(batch)
        if batch.released:
            await self._release(batch)
        self._settle(batch.unwritten)
        batch.unwritten.clear()

    async def _limit_locks(self, *, in_haste: bool) -> None:
        conn = await self.connection()
        is_hasty = conn is self._hasty
        if in_haste is is_hasty or is_pooled(conn):  # with a pooler the next statement may meet another session
            return
        milliseconds = sql.Literal(int((HASTY_LOCK_LIMIT if in_haste else LOCK_LIMIT) * 1000))
        statement = schema_statement("limit_locks", self._queries.schema, milliseconds=milliseconds)
        await conn.execute(statement, prepare=False)
        self._hasty = conn if in_haste else None

    async def _finish_plainly(self, batch: Batch) -> None:
        """The hot path: columns instead of a write for each job."""
        attempts = sorted(batch.succeeded, key=_JOB_ID)
        rows = [attempt.row for attempt in attempts]
        offset = self._clock.offset
        started = [attempt.started + offset for attempt in attempts]
        statement = self._queries.finish_successes(
            [row.id for row in rows],
            [row.claim_token for row in rows],
            started,
            [attempt.finished + offset for attempt in attempts],
            worker_id=self._worker_id,
            slot=self._slot,
        )
        ours = await self._fetch(statement, started)
        batch.succeeded = []
        if len(ours) < len(attempts):
            attempts = self._without_late(attempts, set(ours), batch)
        self._marks.finished += len(attempts)
        self._log.succeeded(attempts)
        self._on_written(attempts)

    def _without_late(self, attempts: Sequence[Attempt], ours: set[int], batch: Batch) -> list[Attempt]:
        late = [attempt for attempt in attempts if attempt.row.id not in ours]
        for attempt in late:
            self._count_late(attempt, batch)
        self._on_written(late)
        return [attempt for attempt in attempts if attempt.row.id in ours]

    async def _finish(self, batch: Batch) -> None:
        writes = [write for write, _ in batch.finished]
        statement = self._queries.finish_jobs(writes, worker_id=self._worker_id, slot=self._slot)
        ours = set(await self._fetch(statement, _starts(writes)))
        done, batch.finished = batch.finished, []
        succeeded = 0
        for write, attempt in done:
            if write.id in ours:
                succeeded += 1
                self._log.finished(attempt, write)
            else:
                self._count_late(attempt, batch)
        self._marks.finished += succeeded
        self._on_written([attempt for _, attempt in done])

    async def _reschedule(self, batch: Batch) -> None:
        writes = [write for write, _ in batch.rescheduled]
        statement = self._queries.reschedule_jobs(writes, slot=self._slot)
        rows = {row.id: row for row in await self._fetch(statement, _starts(writes))}
        done, batch.rescheduled = batch.rescheduled, []
        for write, attempt in done:
            if write.id in rows:
                self._marks.failed += write.charge
                self._log.rescheduled(attempt, write, rows[write.id])
                if write.delay is not None:
                    self._on_retry(write.delay)
            else:
                self._count_late(attempt, batch)
        self._on_written([attempt for _, attempt in done])

    async def _bury(self, batch: Batch) -> None:
        writes = [write for write, _ in batch.letters]
        rows = await self._fetch(self._queries.bury_jobs(writes, slot=self._slot), _starts(writes))
        ours = {row.job_id for row in rows}
        done, batch.letters = batch.letters, []
        for write, attempt in done:
            if write.id in ours:
                self._marks.failed += 1
                self._log.died(write, attempt)
            elif attempt is not None:
                self._count_late(attempt, batch)
        self._on_written([attempt for _, attempt in done if attempt is not None])

    async def _release(self, batch: Batch) -> None:
        claims = [(row.id, row.claim_token) for row in batch.released]
        rows = await self._queries.release_jobs(claims).fetch_all(await self.connection())
        self._log.handed_back(rows)
        batch.released.clear()

    async def _fetch(self, statement: Statement[T], starts: Iterable[float]) -> list[T]:
        """`starts`: when the runs began, for the days that need a partition."""
        conn = await self.connection()
        try:
            return await fetch_quickly(conn, statement, self._queries.schema)
        except psycopg.errors.CheckViolation as error:
            if not is_missing_partition(error):
                raise
            earliest = min(starts, default=None)
            await self._queries.ensure_partitions(days_ahead=1, from_epoch=earliest).execute(conn)
            return await fetch_quickly(conn, statement, self._queries.schema)

    def _settle(self, attempts: Sequence[Attempt]) -> None:
        """Attempts that need no write: committed in their own transaction, or no longer ours."""
        for attempt in attempts:
            if attempt.is_written and isinstance(attempt.write, FinishedJob):
                self._marks.finished += 1
                self._log.finished(attempt, attempt.write)
            elif attempt.verdict is not Verdict.DROP:
                self._marks.late_writes += 1
                self._log.refused(attempt)
        # What was dropped was not written: its mark stays, so that our keeper, who gives it back, tells of the attempt.
        if closed := [attempt for attempt in attempts if attempt.verdict is not Verdict.DROP]:
            self._on_written(closed)

    def _count_late(self, attempt: Attempt, batch: Batch) -> None:
        # After a lost connection nobody knows whether the first try got through: then it is no late write.
        if not batch.is_repeated:
            self._marks.late_writes += 1
            self._log.refused(attempt)


def _starts(writes: Iterable[FinishedJob | RescheduledJob | BuriedJob]) -> list[float]:
    return [write.started for write in writes if write.started is not None]
