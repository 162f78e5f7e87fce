"""Writes outcomes in batches: at once when nothing else waits, by size otherwise. Holds them while it cannot."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeGuard, TypeVar

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import LOCK_LIMIT, connect, first_line
from pgq_core.errors import DatabaseUnavailable
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.queries.wire import fetch_quickly
from pgq_core.service import AT_ONCE, Pauses
from pgq_core.worker.attempt import Attempt, Verdict
from pgq_core.worker.batch import Batch, simplified
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.job_log import JobLog
from pgq_core.worker.marks import Marks, Turn
from pgq_core.worker.refused import AGAIN, Refused

BATCH: Final = 500
"""Rows of one statement; larger ones cost the overlap of claim, work and write (measured: 500 is best)."""
LINGER: Final = 0.005
"""Seconds that a small batch waits for company while more work is at hand."""
CALL_LIMIT: Final = 30.0
"""Seconds after which an answer is no longer waited for."""
MOST_REFUSED: Final = 20
"""Outcomes refused in a row after which it is no matter of single rows: all are held, and nothing new is claimed."""
_VALUE_FAULTS: Final = ("21", "22", "23", "54")
"""SQLSTATE classes that name a fault of a value: words in its place may be taken."""

_JOB_ID: Final = attrgetter("row.id")

T = TypeVar("T")


class Completer:
    """The end of the corridor. `on_written` gets the attempts whose outcome is final, written or refused."""

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
        has_more_work: Callable[[], bool],
        on_written: Callable[[Sequence[Attempt]], None],
        on_retry: Callable[[float], None],
        on_change: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._queries = queries
        self._marks = marks
        self._clock = clock
        self._log = log
        self._worker_id = worker_id
        self._slot = slot
        self._has_more_work = has_more_work
        self._on_written = on_written
        self._on_retry = on_retry
        self._on_change = on_change
        self._attempts: deque[Attempt] = deque()
        self._writing: list[Attempt] = []
        self._letters: deque[BuriedJob] = deque()
        self._released: deque[ClaimedRow] = deque()
        self._conn: AsyncConnection[Any] | None = None
        self._work = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = asyncio.Event()
        self._is_asleep = True
        """It has to be woken for what is added."""
        self._is_careful = False
        """One of the waiting rows makes its statement fail: they are written one by one."""
        self._refused = Refused(self._wake)
        self._refused_in_a_row = 0
        self.is_in_trouble = False
        """Outcomes cannot be written right now: nothing new should be claimed."""
        self._pauses = Pauses(first=AT_ONCE)
        self._logger = get_logger("pgq.worker", worker_id=worker_id)
        self._trouble = RepeatedTrouble(self._logger)

    def add(self, attempt: Attempt) -> None:
        """An attempt that has ended; its `write` says how."""
        self._attempts.append(attempt)
        if self._is_asleep:
            self._wake()

    def bury(self, letter: BuriedJob) -> None:
        """A job that ends without having run."""
        self._letters.append(letter)
        self._wake()

    def release(self, rows: Iterable[ClaimedRow]) -> None:
        """Jobs that were claimed and have not started."""
        self._released.extend(rows)
        if self._released:
            self._wake()

    def job_ids(self) -> set[int]:
        """The jobs whose outcome is not yet written."""
        return (
            {attempt.row.id for attempt in (*self._attempts, *self._writing)}
            | {letter.id for letter in self._letters}
            | {row.id for row in self._released}
            | self._refused.job_ids()
        )

    def is_empty(self) -> bool:
        return self._empty.is_set()

    async def wait_until_empty(self) -> None:
        """Until everything is written."""
        await self._empty.wait()

    async def run(self) -> None:
        """Until `close`; writes what it is given, as long as it takes."""
        while not self._closing.is_set():
            await self._work.wait()
            self._work.clear()
            self._turned()  # from here on a turn is owed
            while not self._closing.is_set() and self._has_something():
                if len(self._attempts) < BATCH and self._has_more_work():
                    await asyncio.sleep(LINGER)
                await self._write_or_wait()
            if self._refused.is_empty():
                self._marks.rests(Turn.FINISH)
            self._is_asleep = True
            self._empty.set()

    async def close(self) -> None:
        self._closing.set()
        self._work.set()
        await self._drop()

    async def connection(self) -> AsyncConnection[Any]:
        """The open connection; statements of several tasks wait for each other on it."""
        if self._conn is None or self._conn.closed:
            self._conn = await connect(
                self._dsn, application_name="pgq worker: finish", pinned_plans=True, lock_limit=LOCK_LIMIT
            )
        return self._conn

    def _wake(self) -> None:
        self._is_asleep = False
        self._empty.clear()
        self._work.set()

    def _has_something(self) -> bool:
        return bool(self._attempts or self._letters or self._released) or self._refused.has_due()

    async def _write_or_wait(self) -> None:
        again = self._refused.take_due()
        batch = self._take() if again is None else again
        self._writing = batch.attempts()
        try:
            async with asyncio.timeout(CALL_LIMIT):
                await self._write(batch)
        except (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError) as error:
            self._writing = []
            if again is not None and _is_about_one_job(error):
                self._refused.add(again)
                return
            self._put_back(batch)
            if _is_about_one_job(error):
                await self._single_out(batch, error)
            else:
                await self._wait_for_database(error)
        else:
            self._writing = []
            self._refused_in_a_row = 0
            self._turned()
            if self.is_in_trouble:
                self.is_in_trouble = False
                self._trouble.over("outcomes_written_again")
                self._pauses.reset()
                self._refused.hurry()
                self._on_change()

    def _turned(self) -> None:
        """Not while an outcome is set aside: somebody has to see that, and do something about it."""
        if self._refused.is_empty():
            self._marks.turned(Turn.FINISH)

    def _take(self) -> Batch:
        batch = Batch(is_repeated=self.is_in_trouble)
        count = 1 if self._is_careful else BATCH
        batch.add([self._attempts.popleft() for _ in range(min(count, len(self._attempts)))])
        for _ in range(min(count - len(batch), len(self._letters))):
            batch.letters.append((self._letters.popleft(), None))
        for _ in range(min(count - len(batch), len(self._released))):
            batch.released.append(self._released.popleft())
        return batch

    def _put_back(self, batch: Batch) -> None:
        """What was not written, in front of what came later."""
        self._attempts.extendleft(reversed(batch.attempts()))
        self._letters.extendleft(reversed([letter for letter, attempt in batch.letters if attempt is None]))
        self._released.extendleft(reversed(batch.released))

    async def _wait_for_database(self, error: Exception) -> None:
        await self._drop()
        self._trouble.say("outcomes_held", error, count=len(self._attempts))
        if not self.is_in_trouble:
            self.is_in_trouble = True
            self._on_change()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pauses.next()):
                await self._closing.wait()

    async def _single_out(self, batch: Batch, error: psycopg.Error) -> None:
        """One of the rows is at fault: they go one by one, and it is put more simply or set aside."""
        is_about_a_value = (error.sqlstate or "").startswith(_VALUE_FAULTS)
        if is_refusal(error) and not is_about_a_value:
            await self._drop()  # the fault may be this session's
        if not self._is_careful:
            self._is_careful = True
        elif is_about_a_value and any(not attempt.is_simplified for attempt in batch.attempts()):
            self._trouble.say("outcome_not_storable", error)
            for attempt in batch.attempts():
                attempt.is_simplified = True
                attempt.write = simplified(attempt, error)
        elif self._refused_in_a_row >= MOST_REFUSED or self._refused.is_full():
            self._attempts.rotate(-1)  # another one may be taken
            await self._wait_for_database(error)
        else:
            self._refused_in_a_row += 1
            self._set_aside(error)

    def _set_aside(self, error: psycopg.Error) -> None:
        """The outcome in front. Its mark stays: our keeper has to know that the job was through."""
        batch = self._take()
        self._refused.add(batch)
        self._logger.error("outcome_refused", job_id=batch.job_ids()[0], error=first_line(error), again_in=AGAIN)

    async def _write(self, batch: Batch) -> None:
        """One statement per kind of outcome; each empties its part of the batch when it is through."""
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
        if not (self._attempts or self._letters or self._released):
            self._is_careful = False

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
        except psycopg.errors.CheckViolation:  # no partition for the day on which one of the runs started
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

    async def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):  # it may be broken in any way
                await conn.close()


def _is_about_one_job(error: Exception) -> TypeGuard[psycopg.Error]:
    """As far as can be told from one error: refused, or its row is locked by somebody."""
    return is_refusal(error) or isinstance(error, psycopg.errors.LockNotAvailable)


def _starts(writes: Iterable[FinishedJob | RescheduledJob | BuriedJob]) -> list[float]:
    return [write.started for write in writes if write.started is not None]
