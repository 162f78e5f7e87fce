"""Places for coroutines: long-lived tasks that take one job after the other.

A task, a timeout or a context per job would cost more than a short job itself (measured: 3.8, 2.9 and 0.1 us a job;
awaiting the handler in a slot costs 0.08 us).
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from pgq_core.worker.attempt import Attempt, Verdict

YIELD_AFTER: Final = 0.005
"""Seconds of work without a pause after which a slot lets claims and completions have their turn."""
CALLED: Final = 2
"""Slots that a waking one wakes."""


class Slot:
    """A place for one coroutine at a time."""

    __slots__ = ("attempt", "parked", "task")

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.parked: asyncio.Future[Attempt] | None = None
        self.task: asyncio.Task[None] | None = None

    def stop(self, attempt: Attempt, verdict: Verdict) -> None:
        """Cancels the coroutine: CancelledError at its next await."""
        if attempt.stop(verdict) and self.task is not None:
            self.task.cancel()

    def forget_cancellation(self) -> None:
        """The slot lives on: a cancellation was meant for the job in it."""
        while self.task is not None and self.task.cancelling():
            self.task.uncancel()


class CoroutineSlots:
    """Opens slots as they are needed. `run` runs one attempt in a slot, `following` gives the next one, if any."""

    def __init__(
        self,
        run: Callable[[Slot, Attempt], Awaitable[None]],
        following: Callable[[], Attempt | None],
        on_broken: Callable[[str], None],
    ) -> None:
        self._run = run
        self._following = following
        self._on_broken = on_broken
        self._slots: list[Slot] = []
        self._parked: list[Slot] = []
        self.clean_context = contextvars.copy_context()

    def give(self, attempt: Attempt) -> None:
        if self._parked:
            parked = self._parked.pop().parked
            if parked is not None:
                parked.set_result(attempt)
        else:
            self._open(attempt)

    def running(self) -> Iterator[tuple[Attempt, Slot]]:
        for slot in self._slots:
            if slot.attempt is not None:
                yield slot.attempt, slot

    def _open(self, attempt: Attempt | None) -> None:
        slot = Slot()
        self._slots.append(slot)
        slot.task = asyncio.create_task(self._serve(slot, attempt), name="pgq-slot", context=self.clean_context.copy())
        slot.task.add_done_callback(self._see_end)

    async def _serve(self, slot: Slot, attempt: Attempt | None) -> None:
        """Runs one job after the other; makes way for a fresh task when a job has left context variables behind.

        Who wakes up calls two more slots, while there is work, and so do they: where jobs wait for something, all slots
        are soon busy; where they never do, this one runs the whole batch and the others were not woken for nothing.
        """
        resumed_at = time.monotonic()
        if attempt is not None:
            self._call_others()
        while True:
            if attempt is None:
                attempt = self._following()
            if attempt is None:
                attempt = await self._park(slot)
                resumed_at = time.monotonic()
                self._call_others()
            await self._run(slot, attempt)
            if attempt.finished - resumed_at > YIELD_AFTER:
                await asyncio.sleep(0)
                resumed_at = time.monotonic()
            attempt = None
            if contextvars.copy_context() != self.clean_context:
                self._slots.remove(slot)
                self._open(self._following())
                return

    def _call_others(self) -> None:
        for _ in range(CALLED):
            attempt = self._following()
            if attempt is None:
                return
            self.give(attempt)

    async def _park(self, slot: Slot) -> Attempt:
        slot.parked = asyncio.get_running_loop().create_future()
        self._parked.append(slot)
        try:
            return await slot.parked
        finally:
            slot.parked = None

    def _see_end(self, task: asyncio.Task[None]) -> None:
        """A slot ends only to make way; anything else is a fault of ours, and this process is better replaced."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_broken(f"a slot broke down: {type(error).__name__}: {error}")
