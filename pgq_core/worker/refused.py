"""Outcomes that the database refuses for reasons of its own, kept until it takes them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from pgq_core.worker.batch import Batch

AGAIN: Final = 10.0
"""Seconds until a refused outcome is tried again."""
MOST: Final = 500
"""Outcomes that are kept beside the others."""


class Refused:
    """Batches of one. Somebody's foreign key, trigger or policy stands against each; it may be mended at any time."""

    def __init__(self, on_due: Callable[[], None]) -> None:
        self._on_due = on_due
        self._waiting: deque[tuple[float, Batch]] = deque()
        """In the order in which they are due."""

    def add(self, batch: Batch) -> None:
        self._waiting.append((time.monotonic() + AGAIN, batch))
        asyncio.get_running_loop().call_later(AGAIN, self._on_due)

    def is_empty(self) -> bool:
        return not self._waiting

    def is_full(self) -> bool:
        return len(self._waiting) >= MOST

    def has_due(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] <= time.monotonic()

    def take_due(self) -> Batch | None:
        return self._waiting.popleft()[1] if self.has_due() else None

    def hurry(self) -> None:
        """All are due now: what stood against them may be gone."""
        if self._waiting:
            self._waiting = deque((0.0, batch) for _, batch in self._waiting)
            self._on_due()

    def job_ids(self) -> set[int]:
        return {job_id for _, batch in self._waiting for job_id in batch.job_ids()}
