"""Writes outcomes in batches: at once when nothing else waits, by size otherwise. Holds them while it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeGuard

import psycopg

from pgq_core.database import first_line, is_missing_partition
from pgq_core.errors import DatabaseUnavailable
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries.claims import BuriedJob, ClaimedRow
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.service import AT_ONCE, Pauses
from pgq_core.worker.attempt import Attempt
from pgq_core.worker.batch import Batch, simplified
from pgq_core.worker.marks import Marks, Turn
from pgq_core.worker.refused import AGAIN, Refused
from pgq_core.worker.writer import Writer

BATCH: Final = 500
"""Rows of one statement; larger ones cost the overlap of claim, work and write (measured: 500 is best)."""
NARROWER: Final = 5
"""A batch in which one row is at fault is written in parts, each so many times smaller, until that row is alone."""
LINGER: Final = 0.005
"""Seconds that a small batch waits for company while more work is at hand."""
CALL_LIMIT: Final = 30.0
"""Seconds after which an answer is no longer waited for."""
LOOK_AGAIN: Final = 0.3
"""Seconds between two looks at a lock, where nothing else is left to do."""
PROBE_LIMIT: Final = 2.0
"""Seconds to say which rows are locked, for a server that has just been silent: a pooler's sessions have no limit for
locks, and waiting for one looks the same.
"""
SECOND_TRIES: Final = 1.0
"""Seconds for outcomes that were refused before, while fresh ones wait."""
_VALUE_FAULTS: Final = ("21", "22", "23", "54")
"""SQLSTATE classes that name a fault of a value: words in its place may be taken."""
_TROUBLE: Final = (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError)


class Completer:
    """The end of the corridor: what has ended waits here until `writer` has written it."""

    def __init__(
        self,
        writer: Writer,
        marks: Marks,
        *,
        worker_id: str,
        has_more_work: Callable[[], bool],
        on_change: Callable[[], None],
    ) -> None:
        """`on_change`: `is_in_trouble` has changed."""
        self._writer = writer
        self._marks = marks
        self._has_more_work = has_more_work
        self._on_change = on_change
        self._attempts: deque[Attempt] = deque()
        self._letters: deque[BuriedJob] = deque()
        self._released: deque[ClaimedRow] = deque()
        self._writing: list[Batch] = []
        self._size = BATCH
        """Smaller while it is sought which row makes its statement fail."""
        self._work = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = asyncio.Event()
        self._is_asleep = True
        """It has to be woken for what is added."""
        self._refused = Refused(self._wake)
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
            {attempt.row.id for attempt in self._attempts}
            | {letter.id for letter in self._letters}
            | {row.id for row in self._released}
            | {job_id for batch in self._writing for job_id in batch.job_ids()}
            | self._refused.job_ids()
        )

    def crowded_queues(self) -> frozenset[str]:
        """Queues of which so many outcomes are refused that nothing more should be claimed from them."""
        return self._refused.crowded_queues()

    def is_empty(self) -> bool:
        return self._empty.is_set()

    async def wait_until_empty(self) -> None:
        """Until everything is written or was refused once more; a lock may go at any moment and is waited for."""
        self._refused.hurry()
        await self._empty.wait()
        while self._refused.waits_for_locks():
            await asyncio.sleep(LOOK_AGAIN)
            self._refused.hurry()
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
                await self._write_next()
            if self._refused.is_empty():
                self._marks.rests(Turn.FINISH)
            self._is_asleep = True
            self._empty.set()

    async def close(self) -> None:
        self._closing.set()
        self._work.set()
        await self._writer.drop()

    def _wake(self) -> None:
        self._is_asleep = False
        self._empty.clear()
        self._work.set()

    def _has_fresh(self) -> bool:
        return bool(self._attempts or self._letters or self._released)

    def _has_something(self) -> bool:
        return self._has_fresh() or self._refused.has_due()

    async def _write_next(self) -> None:
        if self._has_fresh():
            await self._write_fresh()
        if self._refused.has_due() and not (self.is_in_trouble and self._has_fresh()):
            await self._write_refused()

    async def _write_fresh(self) -> None:
        batch = self._take()
        self._writing = [batch]
        try:
            async with asyncio.timeout(CALL_LIMIT):
                await self._writer.write(batch, in_haste=self._size < BATCH)
        except _TROUBLE as error:
            if _is_about_one_job(error):
                await self._single_out(batch, error)
            elif not isinstance(error, TimeoutError) or not await self._set_locked_aside(batch, within=PROBE_LIMIT):
                await self._hold(batch, error)
        else:
            self._size = min(self._size * NARROWER, BATCH)
            self._is_written()
        self._writing = []

    async def _write_refused(self) -> None:
        """What stands against them may be gone. Bounded: each that is still locked would have the fresh ones wait."""
        self._writing, began = self._refused.take_due(), time.monotonic()
        try:
            async with asyncio.timeout(CALL_LIMIT):
                locked = await self._writer.locked([job_id for batch in self._writing for job_id in batch.job_ids()])
                self._is_well()  # it answers; and where all are refused, fresh ones are waiting and we are not here
                while self._writing and time.monotonic() - began < SECOND_TRIES:
                    await self._try_again(self._writing[0], locked)
                    self._writing.pop(0)
        except _TROUBLE as error:
            for batch in self._writing[:1]:
                batch.is_repeated = True
            self._give_back_untried()
            await self._wait_for_database(error)
            return
        self._give_back_untried()
        self._refused.rest_after(time.monotonic() - began)

    def _give_back_untried(self) -> None:
        self._refused.put_back(self._writing)
        self._writing = []

    async def _try_again(self, batch: Batch, locked: set[int]) -> None:
        if not locked.isdisjoint(batch.job_ids()):
            self._refused.add(batch, is_locked=True)
            return
        try:
            await self._writer.write(batch, in_haste=True)
        except psycopg.Error as error:
            if not _is_about_one_job(error):
                raise
            await self._drop_where_the_session_may_be_at_fault(error)
            self._refused.add(batch, is_locked=not is_refusal(error))
        else:
            self._is_written()

    def _is_written(self) -> None:
        self._turned()
        self._is_well()

    def _is_well(self) -> None:
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
        count = self._size
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

    # What cannot be written

    async def _hold(self, batch: Batch, error: Exception) -> None:
        self._put_back(batch)
        self._writing = []
        await self._wait_for_database(error)

    async def _wait_for_database(self, error: Exception) -> None:
        await self._writer.drop()
        self._trouble.say("outcomes_held", error, count=len(self._attempts))
        if not self.is_in_trouble:
            self.is_in_trouble = True
            self._on_change()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pauses.next()):
                await self._closing.wait()

    async def _single_out(self, batch: Batch, error: psycopg.Error) -> None:
        """One of the rows is at fault: it is sought, and put more simply or set aside."""
        is_locked = isinstance(error, psycopg.errors.LockNotAvailable)
        if is_locked and await self._set_locked_aside(batch, within=CALL_LIMIT):
            return
        if len(batch) > 1:
            self._size = max(len(batch) // NARROWER, 1)
            self._put_back(batch)
        elif _is_about_a_value(error) and any(not attempt.is_simplified for attempt in batch.attempts()):
            self._trouble.say("outcome_not_storable", error)
            for attempt in batch.attempts():
                attempt.is_simplified = True
                attempt.write = simplified(attempt, error)
            self._put_back(batch)
        else:
            await self._drop_where_the_session_may_be_at_fault(error)
            await self._set_aside_or_hold(batch, error)

    async def _set_locked_aside(self, batch: Batch, *, within: float) -> bool:
        """All at once: each alone would have the others wait for its lock. False where no row of a job is locked.

        `within`: seconds that the server has to say which ones are.
        """
        try:
            async with asyncio.timeout(within):
                locked = await self._writer.locked(batch.job_ids())
        except _TROUBLE:
            await self._writer.drop()
            return False
        parts = batch.take_out(locked)
        if not parts or len(parts) > self._refused.room():
            for part in parts:
                batch.take_in(part)
            return False
        for part in parts:
            self._refused.add(part, is_locked=True)
        ids = [job_id for part in parts for job_id in part.job_ids()]
        self._logger.warning("outcomes_meet_locks", job_ids=ids[:20], count=len(ids), again_in=AGAIN)
        self._put_back(batch)
        return True

    async def _set_aside_or_hold(self, batch: Batch, error: psycopg.Error) -> None:
        """Its mark stays either way: our keeper has to know that the job was through."""
        if not self._refused.room():
            self._put_back(batch)
            self._attempts.rotate(-1)  # another one may be taken
            self._writing = []
            await self._wait_for_database(error)
            return
        self._refused.add(batch, is_locked=not is_refusal(error))
        self._logger.error("outcome_refused", job_id=batch.job_ids()[0], error=first_line(error), again_in=AGAIN)

    async def _drop_where_the_session_may_be_at_fault(self, error: psycopg.Error) -> None:
        if is_refusal(error) and not _is_about_a_value(error):
            await self._writer.drop()


def _is_about_one_job(error: Exception) -> TypeGuard[psycopg.Error]:
    """As far as can be told from one error: refused, or its row is locked by somebody."""
    return is_refusal(error) or isinstance(error, psycopg.errors.LockNotAvailable)


def _is_about_a_value(error: psycopg.Error) -> bool:
    if isinstance(error, psycopg.errors.ForeignKeyViolation) or is_missing_partition(error):
        return False
    return (error.sqlstate or "").startswith(_VALUE_FAULTS)
