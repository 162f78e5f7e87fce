"""Outcomes that the database refuses for reasons of its own, kept until it takes them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from pgq_core.worker.batch import Batch

AGAIN: Final = 10.0
"""Seconds until a refused outcome is tried again."""
MOST: Final = 2000
"""Outcomes that are kept beside the others."""
CROWD: Final = 100
"""Outcomes of one queue after which nothing more is claimed from it."""
_NONE: Final[frozenset[str]] = frozenset()
RESTS: Final = 9.0
"""Times as long as the last tries took: the fresh outcomes have the connection meanwhile."""


class Refused:
    """Batches of one. Somebody's foreign key, trigger, policy or lock stands against each; it may go at any time."""

    def __init__(self, on_due: Callable[[], None]) -> None:
        self._on_due = on_due
        self._waiting: deque[tuple[float, Batch]] = deque()
        """In the order in which they are due."""
        self._rests_until = 0.0

    def crowded_queues(self) -> frozenset[str]:
        if len(self._waiting) < CROWD:
            return _NONE
        counts = Counter(queue for _, batch in self._waiting for queue in batch.queues())
        return frozenset(queue for queue, count in counts.items() if count >= CROWD)

    def add(self, batch: Batch) -> None:
        self._waiting.append((time.monotonic() + AGAIN, batch))
        self._call(AGAIN)

    def put_back(self, batches: list[Batch]) -> None:
        """They were due, and there was no time for them."""
        self._waiting.extendleft((0.0, batch) for batch in reversed(batches))

    def is_empty(self) -> bool:
        return not self._waiting

    def room(self) -> int:
        return max(MOST - len(self._waiting), 0)

    def has_due(self) -> bool:
        now = time.monotonic()
        return bool(self._waiting) and self._waiting[0][0] <= now and self._rests_until <= now

    def take_due(self) -> list[Batch]:
        now, due = time.monotonic(), []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(self._waiting.popleft()[1])
        return due

    def rest_after(self, seconds: float) -> None:
        """Tries took so long."""
        rest = min(RESTS * seconds, AGAIN)
        self._rests_until = time.monotonic() + rest
        if self._waiting:
            self._call(rest)

    def hurry(self) -> None:
        """All are due now: what stood against them may be gone."""
        if self._waiting:
            self._waiting = deque((0.0, batch) for _, batch in self._waiting)
            self._rests_until = 0.0
            self._on_due()

    def job_ids(self) -> set[int]:
        return {job_id for _, batch in self._waiting for job_id in batch.job_ids()}

    def _call(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._on_due)
