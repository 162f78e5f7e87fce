"""Runs claimed jobs: coroutines on the loop, plain functions in threads, never more at a time than `concurrency`.

Coroutine slots are long-lived tasks that take one job after the other: a task, a timeout or a context per job would
cost more than a short job itself (measured: 3.8, 2.9 and 0.1 us; awaiting the handler in a slot costs 0.08 us).
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol

from pgq_core.errors import ClaimLost
from pgq_core.handlers import Handler, Registry
from pgq_core.queries.claims import BuriedJob, ClaimedRow
from pgq_core.worker.attempt import Attempt, Verdict, Write
from pgq_core.worker.calls import Calls
from pgq_core.worker.deadlines import Deadlines
from pgq_core.worker.endings import Endings
from pgq_core.worker.forks import ThisProcess, end_copy
from pgq_core.worker.marks import Marks
from pgq_core.worker.pace import Pace
from pgq_core.worker.threads import Chunk, JobThreads
from pgq_core.worker.transactional import is_infrastructure

LONGEST_LIMIT: Final = 1e9
"""Seconds. Whatever a row says, it has to fit into the shared memory."""
LONG_TRANSACTION: Final = 300.0
"""Seconds after which an open transaction of a job is warned about: it holds back vacuum for everybody."""
YIELD_AFTER: Final = 0.005
"""Seconds of work without a pause after which a slot lets claims and completions have their turn."""


class EndedJobs(Protocol):
    """Where outcomes go: the completer."""

    def add(self, attempt: Attempt) -> None: ...

    def bury(self, letter: BuriedJob) -> None: ...

    def release(self, rows: Iterable[ClaimedRow]) -> None: ...


class _Slot:
    """A place for one coroutine at a time."""

    __slots__ = ("attempt", "parked", "task")

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.parked: asyncio.Future[Attempt] | None = None
        self.task: asyncio.Task[None] | None = None


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
        concurrency: int,
        job_timeout: float,
        grace: float,
        on_room: Callable[[], None],
        on_stuck: Callable[[str], None],
        on_start: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._registry = registry
        self._calls = calls
        self._endings = endings
        self._marks = marks
        self._ended = ended
        self._job_timeout = job_timeout
        self._grace = grace
        self._on_room = on_room
        self._on_stuck = on_stuck
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
        self._slots: list[_Slot] = []
        self._parked: list[_Slot] = []
        self._leftovers: list[tuple[Attempt, float]] = []
        self._threads = JobThreads(self._run_in_thread, self._collect)
        self._deadlines = Deadlines(self._end_overdue)
        self._clean_context = contextvars.copy_context()
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
        return rows

    def take_cancelled(self, job_ids: Collection[int]) -> list[ClaimedRow]:
        """Those of the unstarted jobs that were cancelled, to be handed back."""
        cancelled = [row for row in self.ready if row.id in job_ids]
        if cancelled:
            kept = [row for row in self.ready if row.id not in job_ids]
            self.ready.clear()
            self.ready.extend(kept)
        return cancelled

    # Stopping what runs

    def cancel(self, job_ids: Collection[int]) -> None:
        """Asks running jobs to stop: a coroutine at its next await, a plain function by `context.cancelled`."""
        for attempt, slot in self._running_attempts():
            if attempt.row.id in job_ids:
                _stop(attempt, Verdict.CANCEL, slot)

    def interrupt(self, verdict: Verdict) -> None:
        """Asks everything that runs to stop: the worker leaves, or was fenced."""
        for attempt, slot in self._running_attempts():
            _stop(attempt, verdict, slot)

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
        return waiting | running | {row.id for row in self.ready}

    def is_idle(self) -> bool:
        return self.running == 0 and not self.ready

    def has_busy_threads(self) -> bool:
        return self._threads.is_busy() or any(_is_alive(attempt) for attempt, _ in self._leftovers)

    async def wait_until_quiet(self) -> None:
        """Until nothing runs."""
        await self._quiet.wait()

    def dispatch(self) -> None:
        """Starts what can start."""
        while (attempt := self._next_attempt()) is not None:
            self._give_to_slot(attempt)

    def forget(self, attempts: Iterable[Attempt]) -> None:
        """The outcomes of these attempts are written."""
        cells = self._marks.cells
        for attempt in attempts:
            cells[2 * attempt.mark] = 0
            self._free_marks.append(attempt.mark)
        if self.ready:
            self.dispatch()

    # Starting

    def _next_attempt(self) -> Attempt | None:
        """The next job for a coroutine slot; plain functions met on the way are given to threads."""
        while self.ready and self.running < self.concurrency and self._free_marks:
            row = self.ready.popleft()
            handler = self._registry.get(row.job_type or "")
            if handler is None:  # claims ask only for known types; a row may have been edited since
                self._ended.release([row])
            elif row.attempts >= row.max_attempts:
                self._ended.bury(self._endings.without_run(row))
            else:
                self.running += 1
                self._quiet.clear()
                if handler.is_async or self._calls.wraps:
                    return self._new_attempt(row, handler)
                self._give_to_thread(row, handler)
        return None

    def _new_attempt(self, row: ClaimedRow, handler: Handler[..., object]) -> Attempt:
        attempt = Attempt(row, handler)
        attempt.mark = self._free_marks.pop()
        limit = handler.timeout if row.timeout is None else row.timeout
        attempt.limit = self._job_timeout if limit is None else min(limit.total_seconds(), LONGEST_LIMIT)
        return attempt

    def _begin(self, attempt: Attempt) -> float:
        """On any thread: the attempt starts now. Answers its deadline, 0 for none."""
        now = time.monotonic()
        attempt.started = now
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

    def _give_to_slot(self, attempt: Attempt) -> None:
        if self._parked:
            parked = self._parked.pop().parked
            if parked is not None:
                parked.set_result(attempt)
        else:
            self._open_slot(attempt)

    def _open_slot(self, attempt: Attempt | None) -> None:
        slot = _Slot()
        self._slots.append(slot)
        slot.task = asyncio.create_task(self._serve(slot, attempt), name="pgq-slot", context=self._clean_context.copy())
        slot.task.add_done_callback(self._see_slots_end)

    async def _serve(self, slot: _Slot, attempt: Attempt | None) -> None:
        """Runs one job after the other; makes way for a fresh task when a job has left context variables behind."""
        resumed_at = time.monotonic()
        while True:
            if attempt is None:
                attempt = self._next_attempt()
            if attempt is None:
                attempt = await self._park(slot)
                resumed_at = time.monotonic()
            await self._run(slot, attempt)
            if attempt.finished - resumed_at > YIELD_AFTER:
                await asyncio.sleep(0)
                resumed_at = time.monotonic()
            attempt = None
            if contextvars.copy_context() != self._clean_context:
                self._slots.remove(slot)
                self._open_slot(self._next_attempt())
                return

    def _see_slots_end(self, task: asyncio.Task[None]) -> None:
        """A slot ends only to make way; anything else is a fault of ours, and this process is better replaced."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_stuck(f"a slot broke down: {type(error).__name__}: {error}")

    async def _park(self, slot: _Slot) -> Attempt:
        slot.parked = asyncio.get_running_loop().create_future()
        self._parked.append(slot)
        try:
            return await slot.parked
        finally:
            slot.parked = None

    # Running

    async def _run(self, slot: _Slot, attempt: Attempt) -> None:
        slot.attempt = attempt
        deadline = self._begin(attempt)
        if 0.0 < deadline < self._deadlines.armed_for:
            self._deadlines.watch(deadline)
        handler = attempt.handler
        write: Write | None
        try:
            if handler.injected or self._calls.wraps:
                write = await self._calls.run(attempt)
            else:
                value = await handler.function(handler.bind(attempt.data))
                attempt.finished = time.monotonic()
                write = self._endings.of_value(attempt, value)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises fails that job and nothing else
            write = self._write_of_error(attempt, error)
            _forget_cancellation(slot)
        if ThisProcess.is_copy:
            end_copy()
        slot.attempt = None
        if attempt.verdict is not None:
            _forget_cancellation(slot)
            if attempt.verdict is Verdict.TIMEOUT and not attempt.is_written:
                write = self._endings.of_timeout(attempt)  # however it ended, it ended too late
        self._settle(attempt, write)
        self._leave_slot()

    def _write_of_error(self, attempt: Attempt, error: BaseException) -> Write | None:
        attempt.finished = time.monotonic()
        try:
            return self._judged(attempt, error)
        except Exception as broken:  # noqa: BLE001 - reading the exception runs its own code
            return self._endings.of_error(attempt, RuntimeError(f"its error cannot be read: {type(broken).__name__}"))

    def _judged(self, attempt: Attempt, error: BaseException) -> Write | None:
        if isinstance(error, ClaimLost):
            return None
        if attempt.verdict is not None:
            return self._endings.of_verdict(attempt, attempt.verdict, error)
        if attempt.handler.transactional and is_infrastructure(error):
            return self._endings.of_trouble(attempt, error)
        return self._endings.of_error(attempt, error)

    def _settle(self, attempt: Attempt, write: Write | None) -> None:
        """On the loop: this is the attempt's one outcome. None: nothing may be written, the job is somebody else's."""
        if attempt.is_settled:
            return
        attempt.is_settled = True
        attempt.write = None if attempt.verdict is Verdict.DROP else write
        self._marks.cells[2 * attempt.mark] = -attempt.row.id
        self.pace.add(attempt.handler.type, attempt.finished - attempt.started)
        if attempt.future is not None and not attempt.future.done():
            self._leave_over(attempt)
        self._ended.add(attempt)

    def _leave_slot(self) -> None:
        self.running -= 1
        self.ended += 1
        waiting = len(self.ready)
        if waiting <= self.low_water:
            self.low_water = -1
            self._on_room()
        if self.running == 0 and waiting == 0:
            self._quiet.set()

    # Plain functions

    def _give_to_thread(self, row: ClaimedRow, handler: Handler[..., object]) -> None:
        attempts = [self._new_attempt(row, handler)]
        room = min(self.pace.chunk_size(handler.type), len(self._free_marks))
        while len(attempts) < room and self.ready and self._is_like(self.ready[0], row):
            attempts.append(self._new_attempt(self.ready.popleft(), handler))
        self._threads.give(Chunk(attempts), self._take_back)

    def _is_like(self, row: ClaimedRow, first: ClaimedRow) -> bool:
        return row.job_type == first.job_type and row.attempts < row.max_attempts

    def _take_back(self, attempts: list[Attempt]) -> None:
        """Jobs that waited in a thread behind a slow one: to whoever is free."""
        self.ready.extendleft(reversed(self._unmarked(attempts)))
        self.dispatch()

    def _unmarked(self, attempts: list[Attempt]) -> list[ClaimedRow]:
        self._free_marks += [attempt.mark for attempt in attempts]
        return [attempt.row for attempt in attempts]

    def _run_in_thread(self, attempt: Attempt) -> None:
        deadline = self._begin(attempt)
        if 0.0 < deadline < self._deadlines.armed_for:
            self._deadlines.watch_from_thread(deadline)
        try:
            attempt.write = self._clean_context.copy().run(self._calls.run_plain, attempt)
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

    def _end_overdue(self, now: float) -> float | None:
        """Stops what is over its limit; answers when to look again."""
        following = [
            due
            for attempt, slot in list(self._running_attempts())
            if attempt.deadline and not attempt.has_returned and (due := self._look_at_deadline(attempt, slot, now))
        ]
        self._leftovers = [(attempt, due) for attempt, due in self._leftovers if _is_alive(attempt)]
        for attempt, due in self._leftovers:
            if due <= now:
                self._on_stuck(f"job {attempt.row.id} outlived its time limit and the grace in a thread")
            else:
                following.append(due)
        return min(following, default=None)

    def _look_at_deadline(self, attempt: Attempt, slot: _Slot | Chunk, now: float) -> float | None:
        if now < attempt.deadline:
            return attempt.deadline
        if now >= attempt.deadline + self._grace:
            self._give_up(attempt, slot)
            return None
        if attempt.verdict is not Verdict.TIMEOUT:
            attempt.verdict = None  # its time is over, whatever was asked of it before
            _stop(attempt, Verdict.TIMEOUT, slot)
            if isinstance(slot, Chunk):
                self._abandon(attempt, slot)
        return attempt.deadline + self._grace

    def _abandon(self, attempt: Attempt, chunk: Chunk) -> None:
        """A thread cannot be stopped: its job is failed now, its slot goes to others, its end will not count."""
        attempt.finished = time.monotonic()
        self._settle(attempt, self._endings.of_timeout(attempt))
        chunk.is_abandoned = True
        self._leave_slot()
        self._take_back(chunk.take_back())

    def _give_up(self, attempt: Attempt, slot: _Slot | Chunk) -> None:
        if isinstance(slot, _Slot):
            attempt.finished = time.monotonic()
            self._settle(attempt, self._endings.of_timeout(attempt))
        self._on_stuck(f"job {attempt.row.id} still runs although its time limit and the grace are over")

    def _leave_over(self, attempt: Attempt) -> None:
        due = time.monotonic() + self._grace
        self._leftovers.append((attempt, due))
        self._deadlines.watch(due)

    def _running_attempts(self) -> Iterator[tuple[Attempt, _Slot | Chunk]]:
        for slot in self._slots:
            if slot.attempt is not None:
                yield slot.attempt, slot
        for chunk in self._threads.chunks:
            if chunk.attempt is not None:
                yield chunk.attempt, chunk


def _stop(attempt: Attempt, verdict: Verdict, slot: _Slot | Chunk) -> None:
    if attempt.verdict is None:
        attempt.stop(verdict)
        if isinstance(slot, _Slot) and slot.task is not None:
            slot.task.cancel()


def _forget_cancellation(slot: _Slot) -> None:
    """The slot lives on: a cancellation was meant for the job in it."""
    while slot.task is not None and slot.task.cancelling():
        slot.task.uncancel()


def _is_alive(attempt: Attempt) -> bool:
    return attempt.future is not None and not attempt.future.done()
