"""Notices that the server's clock was set: ages in the tables are wrong for a while then, and nobody is to blame.

All ages that decide about a row are taken from the server's clock. When somebody sets it ahead, or the whole machine
was suspended, every healthy worker looks silent at once until its next beat. Two looks at the clock, compared with our
monotonic clock between them, tell that apart from silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection

from pgq_core.logs import get_logger
from pgq_core.queries import Queries


class ClockWatch:
    """`tolerance`: steps of so many seconds harm nobody. `patience`: seconds that workers get to beat after one."""

    def __init__(
        self, queries: Queries, *, tolerance: float, patience: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._queries = queries
        self._tolerance = tolerance
        self._patience = patience
        self._monotonic = monotonic
        self._last: tuple[float, float, float] | None = None
        self._distrusted_until = float("-inf")
        self._logger = get_logger("pgq.maintenance")

    @property
    def is_trusted(self) -> bool:
        """Whether an age that the server computes now is a real one."""
        return self._monotonic() >= self._distrusted_until

    async def look(self, conn: AsyncConnection[Any]) -> None:
        before = self._monotonic()
        epoch = await self._queries.read_clock().fetch_one(conn)
        if epoch is not None:
            self.compare(epoch, before=before, after=self._monotonic())

    def compare(self, epoch: float, *, before: float, after: float) -> None:
        """`epoch`: the server's clock at some moment between `before` and `after` on ours."""
        if self._last is not None:
            last_epoch, last_before, last_after = self._last
            passed = epoch - last_epoch
            ahead, back = passed - (after - last_before), (before - last_after) - passed
            if ahead > self._tolerance:
                self._distrusted_until = after + self._patience
                self._logger.warning("server_clock_set_ahead", seconds=round(ahead, 1), patience=self._patience)
            elif back > self._tolerance:
                self._logger.warning("server_clock_set_back", seconds=round(back, 1))
        self._last = epoch, before, after
