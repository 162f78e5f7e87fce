"""Outcomes that the database refuses for reasons of its own, kept until it takes them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

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


class _Waiting(NamedTuple):
    """`due_at`: on the monotonic clock."""

    due_at: float
    batch: Batch
    is_locked: bool


class Refused:
    """Batches of one. Somebody's foreign key, trigger, policy or lock stands against each; it may go at any time."""

    def __init__(self, on_due: Callable[[], None]) -> None:
        self._on_due = on_due
        self._waiting: deque[_Waiting] = deque()
        """In the order in which they are due."""
        self._rests_until = 0.0

    def crowded_queues(self) -> frozenset[str]:
        if len(self._waiting) < CROWD:
            return _NONE
        counts = Counter(queue for waiting in self._waiting for queue in waiting.batch.queues())
        return frozenset(queue for queue, count in counts.items() if count >= CROWD)

    def add(self, batch: Batch, *, is_locked: bool) -> None:
        """`is_locked`: a row of it is, by somebody; else it was refused."""
        self._waiting.append(_Waiting(time.monotonic() + AGAIN, batch, is_locked))
        self._call(AGAIN)

    def put_back(self, batches: list[Batch]) -> None:
        """They were due, and there was no time for them."""
        self._waiting.extendleft(_Waiting(0.0, batch, is_locked=True) for batch in reversed(batches))

    def is_empty(self) -> bool:
        return not self._waiting

    def room(self) -> int:
        return max(MOST - len(self._waiting), 0)

    def has_due(self) -> bool:
        now = time.monotonic()
        return bool(self._waiting) and self._waiting[0].due_at <= now and self._rests_until <= now

    def waits_for_locks(self) -> bool:
        return any(waiting.is_locked for waiting in self._waiting)

    def take_due(self) -> list[Batch]:
        now, due = time.monotonic(), []
        while self._waiting and self._waiting[0].due_at <= now:
            due.append(self._waiting.popleft().batch)
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
            self._waiting = deque(waiting._replace(due_at=0.0) for waiting in self._waiting)
            self._rests_until = 0.0
            self._on_due()

    def job_ids(self) -> set[int]:
        return {job_id for waiting in self._waiting for job_id in waiting.batch.job_ids()}

    def _call(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._on_due)
