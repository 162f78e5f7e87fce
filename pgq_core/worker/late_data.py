"""Data too large to lie in a worker's hands with that of hundreds of others: fetched when its job has a slot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import psycopg

from pgq_core.domain.text import describe
from pgq_core.errors import DatabaseUnavailable
from pgq_core.logs import get_logger
from pgq_core.queries.claims import ClaimedRow
from pgq_core.worker.attempt import Attempt

CALL_LIMIT: Final = 30.0
"""Seconds after which an answer is no longer waited for: the job goes back unspent."""

Fetch = Callable[[ClaimedRow], Awaitable[ClaimedRow | None]]
"""Answers the row with its data, None when the claim is no longer ours."""


class LateData:
    """Attempts on their way into a slot. `on_arrival` gets them complete, `on_loss` those that cannot start."""

    def __init__(
        self, fetch: Fetch, *, on_arrival: Callable[[Attempt], None], on_loss: Callable[[Attempt], None]
    ) -> None:
        self._fetch = fetch
        self._on_arrival = on_arrival
        self._on_loss = on_loss
        self._tasks: dict[Attempt, asyncio.Future[None]] = {}
        self._logger = get_logger("pgq.worker")

    def fetch_for(self, attempt: Attempt) -> None:
        self._tasks[attempt] = asyncio.ensure_future(self._bring(attempt))

    def attempts(self) -> list[Attempt]:
        return list(self._tasks)

    def take_back(self) -> list[Attempt]:
        """All that is on its way; nothing of it arrives any more."""
        taken = list(self._tasks)
        self._tasks.clear()  # not cancelled: outcomes are written on the same connection
        return taken

    async def _bring(self, attempt: Attempt) -> None:
        row = await self._row(attempt)
        if self._tasks.pop(attempt, None) is None:
            return
        if row is None:
            self._on_loss(attempt)
        else:
            attempt.row = row
            self._on_arrival(attempt)

    async def _row(self, attempt: Attempt) -> ClaimedRow | None:
        try:
            async with asyncio.timeout(CALL_LIMIT):
                return await self._fetch(attempt.row)
        except (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError) as error:
            self._logger.warning("data_not_fetched", job_id=attempt.row.id, error=describe(error, limit=500))
            return None
