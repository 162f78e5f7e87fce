"""Time limits of attempts by one timer for all of them: a job that ends in time costs a comparison."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable


class Deadlines:
    """Calls `on_due(now)` when the earliest watched deadline has come; it answers the next one, if any."""

    def __init__(self, on_due: Callable[[float], float | None]) -> None:
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.armed_for = math.inf
        """Monotonic time for which the timer is set: only an earlier deadline has to be watched."""

    def watch(self, deadline: float) -> None:
        """On the loop's thread."""
        if deadline < self.armed_for:
            self._arm(deadline)

    def watch_from_thread(self, deadline: float) -> None:
        if deadline < self.armed_for:
            self._loop.call_soon_threadsafe(self.watch, deadline)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, deadline: float) -> None:
        self.close()
        self.armed_for = deadline
        self._timer = self._loop.call_later(max(deadline - time.monotonic(), 0.0), self._fire)

    def _fire(self) -> None:
        self.armed_for = math.inf
        following = self._on_due(time.monotonic())
        if following is not None:
            self.watch(following)
