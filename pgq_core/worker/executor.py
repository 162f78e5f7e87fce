"""Runs claimed jobs: coroutines on the loop, plain functions in threads, never more at a time than `concurrency`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

from pgq_core.database import is_transient
from pgq_core.handlers import Handler, Registry
from pgq_core.queries.claims import LEFT_BEHIND, BuriedJob, ClaimedRow
from pgq_core.worker.attempt import PLAIN_SUCCESS, Attempt, Verdict, Write
from pgq_core.worker.calls import Calls
from pgq_core.worker.endings import Endings
from pgq_core.worker.forks import ThisProcess, end_copy
from pgq_core.worker.late_data import Fetch, LateData
from pgq_core.worker.limits import Place, TimeLimits
from pgq_core.worker.marks import Marks
from pgq_core.worker.pace import Pace
from pgq_core.worker.slots import CoroutineSlots, Slot
from pgq_core.worker.threads import Chunk, JobThreads
from pgq_core.worker.transactional import HandlersOwn, NotOurs, is_infrastructure

SAMPLED_FROM: Final = 64
"""A batch of so many outcomes tells the pace by every `SAMPLE`th of them."""
SAMPLE: Final = 8
LONGEST_LIMIT: Final = 1e9
"""Seconds. Whatever a row says, it has to fit into the shared memory."""
LONGEST_GAP: Final = 0.5
"""Seconds between two starts after which we may have been suspended."""
LONG_TRANSACTION: Final = 300.0
"""Seconds after which an open transaction of a job is warned about: it holds back vacuum for everybody."""


class OutOfTouch(Exception):
    """Nothing may begin: others may take us for dead by now, and have our jobs."""


class EndedJobs(Protocol):
    """Where outcomes go: the completer."""

    def add(self, attempt: Attempt) -> None: ...

    def bury(self, letter: BuriedJob) -> None: ...

    def release(self, rows: Iterable[ClaimedRow]) -> None: ...


class Executor:
    """`offer` takes claimed rows in; their outcomes go to `ended`. `on_room` is called when more could be claimed."""

    def __init__(
        self,
        registry: Registry,
        calls: Calls,
        endings: Endings,
        marks: Marks,
        ended: EndedJobs,
        *,
        fetch_data: Fetch,
        concurrency: int,
        job_timeout: float,
        grace: float,
        on_room: Callable[[], None],
        on_stuck: Callable[[str], None],
        is_silent: Callable[[], bool] = lambda: False,
        on_start: Callable[[Attempt], None] | None = None,
    ) -> None:
        """`fetch_data`: for jobs whose claim left their data behind.

        `is_silent`: no beat of ours got through for so long that others may take us for dead.
        """
        self._registry = registry
        self._calls = calls
        self._endings = endings
        self._marks = marks
        self._ended = ended
        self._job_timeout = job_timeout
        self._on_room = on_room
        self._on_stuck = on_stuck
        self._is_silent = is_silent
        self._begun_at = 0.0
        self._on_start = on_start
        self.concurrency = concurrency
        self.running = 0
        """Slots in use: a coroutine, or a thread with one or several very short jobs."""
        self.ready: deque[ClaimedRow] = deque()
        """Claimed and not started."""
        self.low_water = -1
        """When no more than these are left, `on_room` is called, once; -1 = never."""
        self.pace = Pace()
        self.ended = 0
        """Slots that became free since the start."""
        self._free_marks = list(range(marks.room))
        self._slots = CoroutineSlots(self._run, self._next_attempt, on_stuck)
        self._threads = JobThreads(self._run_in_thread, self._collect, on_stuck)
        self._late = LateData(fetch_data, on_arrival=self._start, on_loss=self._fail_to_start)
        self._limits = TimeLimits(
            self._running_attempts, grace=grace, on_overdue=self._end_overdue, on_stuck=self._give_up
        )
        self._deadlines = self._limits.deadlines
        self._quiet = asyncio.Event()
        self._quiet.set()

    # Taking in and giving back

    def offer(self, rows: Iterable[ClaimedRow]) -> None:
        """Rows of a claim, in the order in which they shall start."""
        self.ready.extend(rows)
        self.dispatch()

    def in_hand(self) -> int:
        """Claimed jobs that have not ended, started or not."""
        return self.running + len(self.ready)

    def take_unstarted(self) -> list[ClaimedRow]:
        """Everything that has not started, to be handed back."""
        rows = list(self.ready)
        self.ready.clear()
        for chunk in list(self._threads.chunks):
            rows += self._unmarked(chunk.take_back())
        self._note_quiet()
        return rows

    def take_late(self) -> list[ClaimedRow]:
        """What has a slot and waits for its data, to be handed back."""
        rows = self._unmarked(self._late.take_back())
        for _ in rows:
            self._leave_slot()
        return rows

    def take_cancelled(self, job_ids: Collection[int]) -> list[ClaimedRow]:
        """Those of the unstarted jobs that were cancelled, to be handed back."""
        cancelled = [row for row in self.ready if row.id in job_ids]
        if cancelled:
            kept = [row for row in self.ready if row.id not in job_ids]
            self.ready.clear()
            self.ready.extend(kept)
            self._note_quiet()
        return cancelled

    # Stopping what runs

    def cancel(self, job_ids: Collection[int]) -> None:
        """Asks running jobs to stop: a coroutine at its next await, a plain function by `context.cancelled`."""
        for attempt, place in self._running_attempts():
            if attempt.row.id in job_ids:
                place.stop(attempt, Verdict.CANCEL)

    def interrupt(self, verdict: Verdict) -> None:
        """Asks everything that runs to stop: the worker leaves, or was fenced."""
        for attempt, place in self._running_attempts():
            place.stop(attempt, verdict)

    def give_up_threads(self) -> None:
        """Hands back what still runs in threads. Its process has to end right after: nothing stops a thread."""
        for chunk in self._threads.chunks:
            if chunk.attempt is not None and not chunk.attempt.has_returned:
                chunk.attempt.finished = time.monotonic()
                self._settle(chunk.attempt, self._endings.of_verdict(chunk.attempt, Verdict.INTERRUPT))

    def job_ids(self) -> set[int]:
        """Everything in hand, started or not; one that is just being started may be missing for a moment."""
        waiting = {attempt.row.id for chunk in self._threads.chunks for attempt in tuple(chunk.waiting)}
        running = {attempt.row.id for attempt, _ in self._running_attempts()}
        late = {attempt.row.id for attempt in self._late.attempts()}
        return waiting | running | late | {row.id for row in self.ready}

    def is_idle(self) -> bool:
        return self.running == 0 and not self.ready

    def has_busy_threads(self) -> bool:
        return self._threads.is_busy() or self._limits.has_leftovers()

    async def wait_until_quiet(self) -> None:
        """Until nothing runs."""
        await self._quiet.wait()

    def dispatch(self) -> None:
        """Starts what can start: the first coroutine here, the others by it (see CoroutineSlots)."""
        attempt = self._next_attempt()
        if attempt is not None:
            self._slots.give(attempt)

    def forget(self, attempts: Sequence[Attempt]) -> None:
        """The outcomes of these attempts are written."""
        cells, free = self._marks.cells, self._free_marks
        for attempt in attempts:
            cells[2 * attempt.mark] = 0
            free.append(attempt.mark)
        sample = attempts if len(attempts) < SAMPLED_FROM else attempts[::SAMPLE]
        self.pace.add([(attempt.handler.type, attempt.finished - attempt.started) for attempt in sample])
        if self.ready:
            self.dispatch()

    # Starting

    def _next_attempt(self) -> Attempt | None:
        """The next job for a coroutine slot; plain functions met on the way are given to threads."""
        while self.ready and self.running < self.concurrency and self._free_marks:
            row = self.ready.popleft()
            handler = self._registry.get(row.job_type)
            if handler is None:  # claims ask only for known types; a row may have been edited since
                self._ended.release([row])
            elif row.attempts >= row.max_attempts:
                self._ended.bury(self._endings.without_run(row))
            else:
                if self.running == 0:
                    self._quiet.clear()
                self.running += 1
                if row.data == LEFT_BEHIND:
                    self._late.fetch_for(self._new_attempt(row, handler))
                elif handler.is_async or self._calls.wraps:
                    return self._new_attempt(row, handler)
                else:
                    self._give_to_thread(row, handler)
        self._note_quiet()
        return None

    def _note_quiet(self) -> None:
        if self.running == 0 and not self.ready:
            self._quiet.set()

    def _start(self, attempt: Attempt) -> None:
        """Its data has come; its slot is taken already."""
        if attempt.handler.is_async or self._calls.wraps:
            self._slots.give(attempt)
            return
        try:
            self._threads.give(Chunk([attempt]), self._take_back)
        except RuntimeError as error:  # no thread can be started: nothing here would change that
            self._on_stuck(f"job {attempt.row.id} gets no thread: {error}")

    def _fail_to_start(self, attempt: Attempt, reason: Exception | None) -> None:
        """Its data did not come. Trouble of the database is not charged; data that it cannot give at all is."""
        attempt.started = attempt.finished = time.monotonic()
        write: Write | None = None
        if reason is not None:
            of_error = self._endings.of_trouble if is_transient(reason) else self._endings.of_error
            write = of_error(attempt, reason)
        self._settle(attempt, write)
        self._leave_slot()
        self.dispatch()

    def _new_attempt(self, row: ClaimedRow, handler: Handler[..., object]) -> Attempt:
        wanted = handler.timeout if row.timeout is None else row.timeout
        limit = self._job_timeout if wanted is None else min(wanted.total_seconds(), LONGEST_LIMIT)
        return Attempt(row, handler, self._free_marks.pop(), limit)

    def _begin(self, attempt: Attempt) -> float:
        """On any thread: the attempt starts now. Answers its deadline, 0 for none. Raises OutOfTouch."""
        now = time.monotonic()
        attempt.started = now
        if now - self._begun_at > LONGEST_GAP and self._is_silent():
            attempt.verdict = Verdict.INTERRUPT
            raise OutOfTouch
        self._begun_at = now
        cells, cell = self._marks.cells, 2 * attempt.mark
        if attempt.limit > 0.0:
            attempt.deadline = now + attempt.limit
            cells[cell + 1] = int(attempt.deadline * 1e9)
        else:
            cells[cell + 1] = 0
        cells[cell] = attempt.row.id
        if self._on_start is not None:
            self._on_start(attempt)
        return attempt.deadline

    # Running

    async def _run(self, slot: Slot, attempt: Attempt) -> None:
        slot.attempt = attempt
        handler = attempt.handler
        write: Write | None
        try:
            deadline = self._begin(attempt)
            if 0.0 < deadline < self._deadlines.armed_for:
                self._deadlines.watch(deadline)
            if handler.injected or self._calls.wraps:
                write = await self._calls.run(attempt)
            else:
                value = await handler.function(handler.bind(attempt.row.data))
                attempt.finished = time.monotonic()
                write = PLAIN_SUCCESS if value is None else self._endings.of_value(attempt, value)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises fails that job and nothing else
            write = self._write_of_error(attempt, error)
            slot.forget_cancellation()
        if ThisProcess.is_copy:
            end_copy()
        slot.attempt = None
        if attempt.verdict is not None:
            slot.forget_cancellation()
            if attempt.verdict is Verdict.TIMEOUT and not attempt.is_written:
                write = self._endings.of_timeout(attempt)  # however it ended, it ended too late
        self._settle(attempt, write)
        self._leave_slot()

    def _write_of_error(self, attempt: Attempt, error: BaseException) -> Write | None:
        attempt.finished = time.monotonic()
        try:
            return self._judged(attempt, error)
        except BaseException as broken:  # noqa: BLE001 - reading the exception runs its own code
            return self._endings.of_error(attempt, RuntimeError(f"its error cannot be read: {type(broken).__name__}"))

    def _judged(self, attempt: Attempt, error: BaseException) -> Write | None:
        if isinstance(error, NotOurs):
            return None
        is_own = isinstance(error, HandlersOwn)
        if isinstance(error, HandlersOwn):
            error = error.error
        if attempt.verdict is not None:
            return self._endings.of_verdict(attempt, attempt.verdict, error)
        if attempt.handler.transactional and not is_own and is_infrastructure(error):
            return self._endings.of_trouble(attempt, error)
        return self._endings.of_error(attempt, error)

    def _settle(self, attempt: Attempt, write: Write | None) -> None:
        """On the loop: this is the attempt's one outcome. None: nothing may be written, the job is somebody else's."""
        if attempt.is_settled:
            return
        attempt.is_settled = True
        attempt.write = None if attempt.verdict is Verdict.DROP else write
        self._marks.cells[2 * attempt.mark] = -attempt.row.id
        if attempt.future is not None and attempt.is_in_thread():
            self._limits.leave_over(attempt)
        self._ended.add(attempt)

    def _leave_slot(self) -> None:
        self.running -= 1
        self.ended += 1
        waiting = len(self.ready)
        if waiting <= self.low_water:
            self.low_water = -1
            self._on_room()
        self._note_quiet()

    # Plain functions

    def _give_to_thread(self, row: ClaimedRow, handler: Handler[..., object]) -> None:
        attempts = [self._new_attempt(row, handler)]
        room = min(self.pace.chunk_size(handler.type), len(self._free_marks))
        while len(attempts) < room and self.ready and self._is_like(self.ready[0], row):
            attempts.append(self._new_attempt(self.ready.popleft(), handler))
        self._threads.give(Chunk(attempts), self._take_back)

    def _is_like(self, row: ClaimedRow, first: ClaimedRow) -> bool:
        return row.job_type == first.job_type and row.attempts < row.max_attempts and row.data != LEFT_BEHIND

    def _take_back(self, attempts: list[Attempt]) -> None:
        """Jobs that waited in a thread behind a slow one: to whoever is free."""
        self.ready.extendleft(reversed(self._unmarked(attempts)))
        self.dispatch()

    def _unmarked(self, attempts: list[Attempt]) -> list[ClaimedRow]:
        self._free_marks += [attempt.mark for attempt in attempts]
        return [attempt.row for attempt in attempts]

    def _run_in_thread(self, attempt: Attempt) -> None:
        try:
            deadline = self._begin(attempt)
            if 0.0 < deadline < self._deadlines.armed_for:
                self._deadlines.watch_from_thread(deadline)
            attempt.write = self._slots.clean_context.copy().run(self._calls.run_plain, attempt)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises fails that job and nothing else
            attempt.write = self._write_of_error(attempt, error)
        if ThisProcess.is_copy:
            end_copy()
        attempt.has_returned = True

    def _collect(self, attempts: list[Attempt], chunks: list[Chunk]) -> None:
        """On the loop: what threads have done since the last time."""
        for attempt in attempts:
            self._settle(attempt, attempt.write)
        for chunk in chunks:
            if not chunk.is_abandoned:
                self._leave_slot()
        self.dispatch()

    def take_long_transactions(self) -> list[Attempt]:
        """Transactional attempts that have been open for too long, each once."""
        latest = time.monotonic() - LONG_TRANSACTION
        found = [
            attempt
            for attempt, _ in self._running_attempts()
            if attempt.handler.transactional and not attempt.is_noted and 0.0 < attempt.started < latest
        ]
        for attempt in found:
            attempt.is_noted = True
        return found

    # Time limits

    def _end_overdue(self, attempt: Attempt, place: Place) -> None:
        """A thread cannot be stopped: its job is failed now, its slot goes to others, its end will not count."""
        if isinstance(place, Chunk):
            attempt.finished = time.monotonic()
            self._settle(attempt, self._endings.of_timeout(attempt))
            place.is_abandoned = True
            self._leave_slot()
            self._take_back(place.take_back())

    def _give_up(self, attempt: Attempt, place: Place | None) -> None:
        """It still runs although its time limit and the grace are over: only the end of the process ends it."""
        if isinstance(place, Slot):
            attempt.finished = time.monotonic()
            self._settle(attempt, self._endings.of_timeout(attempt))
        self._on_stuck(f"job {attempt.row.id} still runs although its time limit and the grace are over")

    def _running_attempts(self) -> Iterator[tuple[Attempt, Place]]:
        yield from self._slots.running()
        for chunk in self._threads.chunks:
            if chunk.attempt is not None:
                yield chunk.attempt, chunk
