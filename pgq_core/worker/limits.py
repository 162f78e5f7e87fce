"""Time limits of running attempts: who is over it is stopped, who does not stop is given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pgq_core.worker.attempt import Attempt, Verdict
from pgq_core.worker.deadlines import Deadlines
from pgq_core.worker.slots import Slot
from pgq_core.worker.threads import Chunk

Place = Slot | Chunk


class TimeLimits:
    """`on_overdue` is called when a limit has passed, `on_stuck` when the code still runs after the grace."""

    def __init__(
        self,
        running: Callable[[], Iterable[tuple[Attempt, Place]]],
        *,
        grace: float,
        on_overdue: Callable[[Attempt, Place], None],
        on_stuck: Callable[[Attempt, Place | None], None],
    ) -> None:
        self._running = running
        self._grace = grace
        self._on_overdue = on_overdue
        self._on_stuck = on_stuck
        self._leftovers: list[tuple[Attempt, float]] = []
        self.deadlines = Deadlines(self._look)

    def leave_over(self, attempt: Attempt) -> None:
        """Its outcome is decided, but a thread still works on it."""
        due = time.monotonic() + self._grace
        self._leftovers.append((attempt, due))
        self.deadlines.watch(due)

    def has_leftovers(self) -> bool:
        return any(attempt.is_in_thread() for attempt, _ in self._leftovers)

    def _look(self, now: float) -> float | None:
        """Answers when to look again."""
        following = [
            due
            for attempt, place in list(self._running())
            if attempt.deadline and not attempt.has_returned and (due := self._look_at(attempt, place, now))
        ]
        self._leftovers = [(attempt, due) for attempt, due in self._leftovers if attempt.is_in_thread()]
        for attempt, due in self._leftovers:
            if due <= now:
                self._on_stuck(attempt, None)
            else:
                following.append(due)
        return min(following, default=None)

    def _look_at(self, attempt: Attempt, place: Place, now: float) -> float | None:
        if now < attempt.deadline:
            return attempt.deadline
        if now >= attempt.deadline + self._grace:
            self._on_stuck(attempt, place)
            return None
        if attempt.verdict is not Verdict.TIMEOUT and not attempt.is_written:
            attempt.verdict = None  # its time is over, whatever was asked of it before
            place.stop(attempt, Verdict.TIMEOUT)
            self._on_overdue(attempt, place)
        return attempt.deadline + self._grace
