"""Claims batches into free slots; sleeps when there is nothing to claim, and wakes up in time.

Polling is the truth: a notification only ends a sleep early. Before it sleeps, a worker says so, claims once more and
only then waits, so that a producer who saw nobody waiting cannot leave a job behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.errors import DatabaseUnavailable
from pgq_core.listener import Listener
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries import Queries
from pgq_core.queries.claims import ClaimedRow
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.queries.wire import fetch_quickly
from pgq_core.service import AT_ONCE, Pauses
from pgq_core.worker.careful_claims import CarefulClaims
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.completer import Completer
from pgq_core.worker.executor import Executor
from pgq_core.worker.job_log import JobLog
from pgq_core.worker.pace import LARGEST_CLAIM
from pgq_core.worker.promotions import Promotions
from pgq_core.worker.roll_call import RollCall
from pgq_core.worker.rotation import Rotation
from pgq_core.worker.search import Search
from pgq_core.worker.spec import ServedQueue
from pgq_core.worker.stop_requests import StopRequests
from pgq_core.worker.suspects import Suspects

CALL_LIMIT: Final = 30.0
"""Seconds that a turn may take, give or take a sixth."""
FIRST_PAUSES: Final = (0.005, 0.02, 0.1)
"""Seconds between the claims of a worker that has just run dry; then it polls."""
AFTER_FEW: Final = 0.01
"""Seconds until the next claim of a worker that found fewer jobs than it has room for, and is told of new ones."""
STILL_AWAKE: Final = 0.05
"""Seconds that a busy worker goes on being notified: light load would else write its wish again for every job."""
SILENT_PAUSE: Final = 1.0
"""Seconds at most between two looks whether our beats get through again."""
TOGETHER: Final = 0.2
"""Of the poll interval: what is due so soon is done in the turn that goes on, instead of waking us once more.

The two things that are done once a poll are done in one turn, or else each would bring a claim of its own."""


class Producer:
    """The beginning of the corridor: one task, one connection, which also listens."""

    def __init__(
        self,
        listener: Listener,
        executor: Executor,
        completer: Completer,
        *,
        queries: Queries,
        clock: DatabaseClock,
        log: JobLog,
        worker_id: str,
        queues: Sequence[ServedQueue],
        job_types: Sequence[str],
        poll: float,
        roll_call_every: float,
        burst: bool,
        random: Random,
        on_turn: Callable[[], None],
        on_sweep: Callable[[float | None], None],
        is_silent: Callable[[], bool],
    ) -> None:
        """`on_turn`: after each good turn of the loop.

        `is_silent`: others may take us for dead by now, as after a suspension: nothing may be claimed.

        `on_sweep`: now and then, with the moment since which no queue was swept whole; None where no sweep is owed.
        """
        self._on_turn, self._on_sweep, self._is_silent = on_turn, on_sweep, is_silent
        self._has_claimed = False
        """Since the last look around."""
        self._listener = listener
        self._queries = queries
        self._executor = executor
        self._completer = completer
        self._clock = clock
        self._log = log
        self._worker_id = worker_id
        self._rotation = Rotation(queues)
        self._job_types = list(job_types)
        self._careful = CarefulClaims(queries, worker_id=worker_id, job_types=job_types)
        self._searches = {
            name: Search(
                name, queries, clock, worker_id=worker_id, job_types=job_types, is_thorough=burst, careful=self._careful
            )
            for name in (queue.name for queue in queues)
        }
        self._promotions = Promotions(
            queries, queues=list(self._searches), worker_id=worker_id, poll=poll, on_late=self._hurry_sweeps
        )
        self._poll = poll
        self._burst = burst
        self._is_stopping = False
        self._pauses = Pauses(first=AT_ONCE)
        self._logger = get_logger("pgq.worker", worker_id=worker_id)
        self._trouble = RepeatedTrouble(self._logger)
        self._is_flagged = False
        """Producers notify us."""
        self._busy_since = 0.0
        self._dry_turns = 0
        """Claims in a row that found nothing."""
        self._hears_of_jobs = False
        self._is_prompted = False
        """Somebody has just told us of jobs: they come before everything that is only due."""
        self._look_at = 0.0
        self._ended_at_last_look = -1
        self._stuck_at = -1
        """`Executor.ended` when jobs were handed back since no slot became free for them."""
        self._suspects = Suspects(random)
        self._stop_requests = StopRequests(executor, completer, queries, worker_id=worker_id)
        self._roll_call = RollCall(
            executor, completer, queries, worker_id=worker_id, recheck=poll, whole_every=roll_call_every
        )

    def wake(self) -> None:
        """There is room again, or something changed."""
        self._listener.wake()

    def due_in(self, seconds: float) -> None:
        """A job of ours is due in so many seconds: its retry must not wait for the next poll."""
        if self._promotions.is_earlier(time.monotonic() + seconds):
            self._listener.wake()

    def stop(self) -> None:
        """Claims nothing any more; a claim that is under way is still taken in."""
        self._is_stopping = True
        self._listener.wake()

    async def run(self) -> None:
        """Until `stop`, or, in a burst, until nothing is left to do."""
        while True:
            try:
                async with asyncio.timeout(CALL_LIMIT) as limit:
                    return await self._turns(limit)
            except (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError) as error:
                await self._listener.drop()
                self._is_flagged = False
                self._roll_call.lost_touch()
                self._trouble.say("claims_wait_for_database", error)
                await self._listener.wait(self._pauses.next())

    async def _turns(self, limit: asyncio.Timeout) -> None:
        """One after the other, each within `limit`, which moves on with them: a new one for each turn is dearer."""
        while not self._is_stopping:
            _renew(limit, CALL_LIMIT)
            pause = await self._turn(await self._listener.connection())
            if self._careful.passed_by.is_empty() and self._promotions.passed_by.is_empty():
                self._on_turn()  # else somebody has to see that jobs are refused
            self._trouble.over("claims_work_again")
            self._pauses.reset()
            if self._burst and self._has_run_dry():
                return
            if pause > 0 and not self._is_stopping:
                _renew(limit, CALL_LIMIT + pause)
                await self._rest(pause)

    async def _turn(self, conn: AsyncConnection[Any]) -> float:
        """Everything that is due now; answers how long to rest."""
        if self._is_silent():
            # The watchdog ends this process, unless a beat comes first.
            await self._listener.wait(min(self._poll, SILENT_PAUSE))
            return 0.0
        now = time.monotonic()
        is_prompted, self._is_prompted = self._is_prompted, False
        if not is_prompted:
            is_polling = now + self._poll * TOGETHER >= self._look_at
            if is_polling:
                await self._look_around(conn, now)
            if self._promotions.is_due(now, is_polling=is_polling):
                await self._promote(conn)
        wanted = self._wanted(now)
        if wanted > 0:
            return await self._claim(conn, wanted)
        if self._suspects.may_run_now(self._executor.is_idle(), now):
            return await self._claim_suspect(conn)
        return await self._stay_busy(conn, now)

    async def _rest(self, pause: float) -> None:
        now = time.monotonic()
        words = await self._listener.wait(max(min(pause, self._promotions.due_at - now, self._look_at - now), 0.0))
        self._executor.low_water = -1
        if "jobs" in words:
            self._dry_turns = 0
            self._hears_of_jobs = self._is_prompted = True
        if "cancel" in words:
            self._stop_requests.hear()
            self._look_at = 0.0

    # Claiming

    def _wanted(self, now: float) -> int:
        """How many jobs to claim now."""
        executor = self._executor
        if self._completer.is_in_trouble or self._suspects.holds_claims_back(executor.is_idle(), now):
            return 0
        in_hand, ahead = executor.in_hand(), self._ahead()
        if in_hand >= executor.concurrency and len(executor.ready) > ahead // 2:
            return 0
        return min(executor.concurrency + ahead - in_hand, LARGEST_CLAIM)

    def _ahead(self) -> int:
        """How many may wait here beside those that run: none behind jobs that turned out to be long."""
        if self._executor.ended == self._stuck_at:
            return 0
        return self._executor.pace.ahead(self._executor.concurrency)

    async def _claim(self, conn: AsyncConnection[Any], wanted: int) -> float:
        found = 0
        self._has_claimed = True
        crowded = self._completer.crowded_queues()
        for queue in self._rotation.order():
            if queue in crowded:
                continue
            found += self._take_in(await self._searches[queue].claim(conn, wanted - found))
            if found >= wanted or self._is_stopping:
                break
        if found:
            self._dry_turns = 0
            if found >= wanted:
                return 0.0
            if self._is_flagged:  # since before this claim: who commits after its snapshot notifies us
                return AFTER_FEW
            await asyncio.sleep(0)  # these start before the next claim is put together
            return 0.0
        return await self._run_dry(conn)

    def _take_in(self, rows: list[ClaimedRow]) -> int:
        if rows:
            self._ended_at_last_look = -1  # they have only just come: nobody knows yet whether they will wait
            self._roll_call.answered(rows[-1].claim_token)
            self._log.claimed(rows)
            if self._is_stopping:
                self._completer.release(rows)
            else:
                self._executor.offer(rows)
        return len(rows)

    async def _run_dry(self, conn: AsyncConnection[Any]) -> float:
        """Nothing to claim: say that we sleep, look once more, then sleep a little longer each time."""
        if self._hears_of_jobs:  # what came may be due a little later
            self._hears_of_jobs = False
            if await self._promote(conn):
                return 0.0
        if self._suspects.may_run_now(self._executor.is_idle(), time.monotonic()):
            pause = await self._claim_suspect(conn)
            if pause == 0.0:
                return 0.0
        if not self._is_flagged:
            await self._flag(conn, waiting=True)
            return 0.0
        self._busy_since = 0.0
        self._executor.low_water = 0 if self._burst else -1
        self._dry_turns += 1
        return FIRST_PAUSES[self._dry_turns - 1] if self._dry_turns <= len(FIRST_PAUSES) else self._poll

    async def _stay_busy(self, conn: AsyncConnection[Any], now: float) -> float:
        """No room: wait for some. Who has been busy for a while needs no notification."""
        self._busy_since = self._busy_since or now
        if self._is_flagged and now - self._busy_since > STILL_AWAKE:
            await self._flag(conn, waiting=False)
        executor = self._executor
        executor.low_water = self._ahead() // 2
        if self._wanted(time.monotonic()) > 0:
            return 0.0
        return STILL_AWAKE if self._is_flagged else self._poll

    async def _flag(self, conn: AsyncConnection[Any], *, waiting: bool) -> None:
        statement = self._queries.set_waiting(worker_id=self._worker_id, waiting=waiting)
        # Where a stranger holds the row we poll, or are told of jobs that we do not need.
        with contextlib.suppress(psycopg.errors.LockNotAvailable):
            await fetch_quickly(conn, statement, self._queries.schema)
        self._is_flagged = waiting

    def _has_run_dry(self) -> bool:
        return self._dry_turns > 1 and self._executor.is_idle() and self._completer.is_empty()

    # Suspects run alone

    async def _claim_suspect(self, conn: AsyncConnection[Any]) -> float:
        queues = list(self._searches)
        statement = self._queries.claim_suspect_job(
            queues=queues,
            worker_id=self._worker_id,
            job_types=self._job_types,
            except_jobs=self._careful.passed_by.ids(),
        )
        try:
            rows = await statement.fetch_all(conn)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            rows = await self._careful.claim(conn, queues, 1, error, suspect=True)
        if rows:
            self._clock.set(rows[-1].claimed_at)
        self._suspects.claimed(is_found=bool(rows), now=time.monotonic())
        return 0.0 if self._take_in(rows) else self._poll

    # What has to be looked at from time to time

    async def _look_around(self, conn: AsyncConnection[Any], now: float) -> None:
        self._look_at = now + self._poll
        self._on_sweep(min(search.sweep.looked_at for search in self._searches.values()) if self._has_claimed else None)
        self._has_claimed = False
        await self._stop_requests.look(conn)
        self._hand_back_stuck()
        if self._roll_call.is_due(now):
            await self._roll_call.look(conn)
        if self._suspects.wants_to_look(now) and not self._executor.is_idle():
            statement = self._queries.has_due_suspect(
                queues=list(self._searches), job_types=self._job_types, except_jobs=self._careful.passed_by.ids()
            )
            self._suspects.looked(is_waiting=bool(await statement.fetch_one(conn)), now=now)

    def _hand_back_stuck(self) -> None:
        """Jobs that wait here behind long ones, while other workers may be idle, go back."""
        ended, self._ended_at_last_look = self._ended_at_last_look, self._executor.ended
        if self._executor.ready and ended == self._executor.ended:
            self._stuck_at = ended
            self._completer.release(self._executor.take_unstarted())

    async def _promote(self, conn: AsyncConnection[Any]) -> bool:
        """Answers whether jobs were due."""
        count = await self._promotions.promote(conn)
        if count:
            self._dry_turns = 0
        return count > 0

    def _hurry_sweeps(self) -> None:
        for search in self._searches.values():
            search.sweep.hurry()


def _renew(limit: asyncio.Timeout, seconds: float) -> None:
    """It ends in so many seconds. Not moved as long as it is nearly right."""
    now, when = asyncio.get_running_loop().time(), limit.when()
    if when is None or abs(when - now - seconds) > seconds / 6:
        limit.reschedule(now + seconds)
