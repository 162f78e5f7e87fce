"""A duty: something that the leader does from time to time."""

from __future__ import annotations

import time
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.health import turn_limit
from pgq_core.domain.rest import rest_after
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries
from pgq_core.service import PeriodicService


class Duty(PeriodicService):
    """Subclasses give `work`; a follower's turns do nothing."""

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float) -> None:
        super().__init__(interval=interval, limit=turn_limit(interval, least=leadership.patience))
        self._leadership = leadership
        self._queries = queries
        self._rests_until = 0.0

    async def run_once(self) -> None:
        async with self._leadership.lead() as conn:
            if conn is not None:
                await self.work(conn)

    async def work(self, conn: AsyncConnection[Any]) -> None:
        """One turn as the leader. Long work ends early and says so by `nudge`, so that other duties have their turn."""
        raise NotImplementedError

    def is_rested(self) -> bool:
        """Whether the rest after its last dear look is over."""
        return time.monotonic() >= self._rests_until

    def looked(self, began: float, *, found_all: bool) -> None:
        """A look that began then has ended: the duty rests if it was dear, unless there is more to find at once."""
        self.rest(rest_after(time.monotonic() - began) if found_all else 0.0)

    def rest(self, seconds: float) -> None:
        self._rests_until = time.monotonic() + seconds
