"""Services that run for ever: start, loop, error handling and stop, written once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import psycopg

from pgq_core.database import is_transient, translated
from pgq_core.domain.health import LoopHealth, turn_limit
from pgq_core.domain.text import describe
from pgq_core.errors import MissingRights
from pgq_core.logs import RepeatedTrouble, get_logger

T = TypeVar("T")

LEFTOVERS: Final = 0.1
"""Seconds that tasks have to end once the main one is through."""
AT_ONCE: Final = 0.05
"""Seconds, on average, before a worker that lost its connection tries another."""
LEAST_LIMIT: Final = 30.0
"""Seconds that any loop may take to its next good turn, where its owner says nothing else."""


class Service(Protocol):
    """Something that runs beside others until it is told to stop."""

    async def run(self, stop: asyncio.Event) -> None: ...


@runtime_checkable
class Turning(Protocol):
    """Something with loops, that tells how they do."""

    def loops(self) -> Sequence[LoopHealth]: ...


def loops_of(services: Iterable[object]) -> list[LoopHealth]:
    """Of all services that tell."""
    return [loop for service in services if isinstance(service, Turning) for loop in service.loops()]


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """How a service does. `last_good_age`: seconds since its last good turn, None before the first one."""

    last_good_age: float | None
    failures: int
    last_error: str | None


class Pauses:
    """Growing, jittered pauses between attempts that fail: one attempt a second on average at most, back to work soon.

    `first`: the mean of the first one, where a single cut connection is likelier than a server that is away.

    >>> pauses = Pauses(first=0.1, random=Random(1))
    >>> 0.05 <= pauses.next() <= 0.15 and 1.0 <= pauses.next() <= 3.0
    True
    """

    def __init__(
        self, *, base: float = 1.0, cap: float = 3.0, first: float | None = None, random: Random | None = None
    ) -> None:
        self._first = base if first is None else first
        self._base = base
        self._cap = cap
        self._random = random or Random()  # noqa: S311 - spreads load, guards nothing
        self.failures = 0

    def next(self) -> float:
        mean = min(self._cap, self._base * 2.0 ** min(self.failures, 10)) if self.failures else self._first
        self.failures += 1
        return mean * self._random.uniform(0.5, 1.5)

    def reset(self) -> None:
        self.failures = 0


class PeriodicService:
    """Calls `run_once` again and again: at once, then `interval` seconds after each end, sooner by `nudge`.

    No error ends the loop. Trouble with the database is backed off with jitter and said once a minute; any other error
    is a fault of ours, logged with its traceback, and backed off further.
    """

    name = "service"
    longest_turn = 120.0
    """Seconds after which a turn is given up: a database may be silent without being gone."""

    def __init__(self, *, interval: float, limit: float | None = None, random: Random | None = None) -> None:
        """`limit`: seconds without a good turn after which it counts as stalled."""
        self.interval = interval
        self._limit = turn_limit(interval, least=LEAST_LIMIT) if limit is None else limit
        self._nudged = asyncio.Event()
        self._pauses = Pauses(random=random)
        self._fault_pauses = Pauses(base=2.0, cap=60.0, random=random)
        self._logger = get_logger(f"pgq.{self.name}")
        self._trouble = RepeatedTrouble(self._logger)
        self._began_at: float | None = None
        self._turned_at: float | None = None
        self._last_good_at: float | None = None
        self._last_error: str | None = None

    async def run_once(self) -> None:
        """One turn. Subclasses do their work here; tests call it directly instead of waiting."""
        raise NotImplementedError

    async def stopped(self) -> None:
        """Called once after the last turn, for what has to be given back; errors are logged."""

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set; a turn that is going on then is finished first."""
        self._began_at = self._turned_at = time.monotonic()
        while not stop.is_set():
            pause = await self._turn()
            self._turned_at = time.monotonic()
            if not self._nudged.is_set():
                await wait_for_any(stop, self._nudged, timeout=pause)
            self._nudged.clear()
        self._began_at = None
        try:
            await self.stopped()
        except Exception as error:  # noqa: BLE001 - the loop is over; what could not be given back times out by itself
            self._logger.warning("service_not_given_back", error=describe(error, limit=1000))

    def nudge(self) -> None:
        """Let the next turn start now."""
        self._nudged.set()

    def health(self) -> ServiceHealth:
        age = None if self._last_good_at is None else time.monotonic() - self._last_good_at
        return ServiceHealth(age, self._pauses.failures + self._fault_pauses.failures, self._last_error)

    def loops(self) -> tuple[LoopHealth, ...]:
        """Itself while it runs. Before its first good turn its age is that of the loop."""
        if self._began_at is None:
            return ()
        good_at = self._began_at if self._last_good_at is None else max(self._last_good_at, self._began_at)
        return (LoopHealth(self.name, time.monotonic() - good_at, self._limit, self._last_error),)

    def stuck_for(self) -> float | None:
        """Seconds since its last turn ended, well or badly, when that is longer than the limit; None when it turns."""
        if self._began_at is None or self._turned_at is None:
            return None
        age = time.monotonic() - self._turned_at
        return age if age > self._limit else None

    async def _turn(self) -> float:
        """One turn with its errors; answers the pause after it."""
        try:
            async with asyncio.timeout(self.longest_turn):
                await self.run_once()
        except Exception as error:  # noqa: BLE001 - it is told, and the loop goes on
            self._last_error = describe(error, limit=1000)
            if is_transient(error):
                self._trouble.say("service_waits_for_database", error)
                return self._pauses.next()
            self._complain(error)
            return self._fault_pauses.next()
        self._trouble.over("service_works_again")
        self._last_good_at, self._last_error = time.monotonic(), None
        self._pauses.reset()
        self._fault_pauses.reset()
        return self.interval

    def _complain(self, error: Exception) -> None:
        """A right that is missing is no fault of the code that met it: that needs no traceback."""
        told = translated(error) if isinstance(error, psycopg.Error) else error
        if isinstance(told, MissingRights):
            self._logger.error("service_failed", error=describe(told, limit=1000))
        else:
            self._logger.error("service_failed", error=self._last_error, exc_info=error)


def run_and_leave(
    main: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
) -> T:
    """As asyncio.run, but bounded: what is still going on at the end of `main` is cancelled and not waited for.

    A statement on a connection whose other end is silent does not end when it is cancelled, for many seconds.
    """
    loop = loop_factory()
    try:
        return loop.run_until_complete(_leaving(main))
    finally:
        loop.close()


async def _leaving(main: Coroutine[Any, Any, T]) -> T:
    try:
        return await main
    finally:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=LEFTOVERS)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`. None when `stop` is set first: `work` is then cancelled and not waited for."""
    task, asked = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        asked.cancel()
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # looked at: nobody complains


async def wait_for_any(*events: asyncio.Event, timeout: float | None = None) -> bool:
    """Whether one of the events is set within `timeout` seconds."""
    if any(event.is_set() for event in events):
        return True
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return bool(done)
