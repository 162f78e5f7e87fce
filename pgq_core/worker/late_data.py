"""Data too large to lie in a worker's hands with that of hundreds of others: fetched when its job has a slot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pgq_core.domain.text import describe
from pgq_core.logs import get_logger
from pgq_core.queries.claims import ClaimedRow
from pgq_core.worker.attempt import Attempt

CALL_LIMIT: Final = 30.0
"""Seconds after which an answer is no longer waited for: the job goes back unspent."""

Fetch = Callable[[ClaimedRow], Awaitable[ClaimedRow | None]]
"""Answers the row with its data, None when the claim is no longer ours."""


class LateData:
    """Attempts on their way into a slot. `on_arrival` gets them complete.

    `on_loss` gets those that cannot start, and why: None where the job is no longer ours.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        on_arrival: Callable[[Attempt], None],
        on_loss: Callable[[Attempt, Exception | None], None],
    ) -> None:
        self._fetch = fetch
        self._on_arrival = on_arrival
        self._on_loss = on_loss
        self._awaited: set[Attempt] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._logger = get_logger("pgq.worker")

    def fetch_for(self, attempt: Attempt) -> None:
        self._awaited.add(attempt)
        task = asyncio.create_task(self._bring(attempt), name="data of a job")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def attempts(self) -> list[Attempt]:
        return list(self._awaited)

    def take_back(self) -> list[Attempt]:
        """All that is on its way; nothing of it arrives any more."""
        taken, self._awaited = self._awaited, set()  # not cancelled: outcomes are written on the same connection
        return list(taken)

    async def _bring(self, attempt: Attempt) -> None:
        row, reason = await self._row(attempt)
        if attempt not in self._awaited:
            return
        self._awaited.discard(attempt)
        if row is None:
            self._on_loss(attempt, reason)
        else:
            attempt.row = row
            self._on_arrival(attempt)

    async def _row(self, attempt: Attempt) -> tuple[ClaimedRow | None, Exception | None]:
        try:
            async with asyncio.timeout(CALL_LIMIT):
                return await self._fetch(attempt.row), None
        except Exception as error:  # noqa: BLE001 - whatever it is, the job has to go back
            self._logger.warning("data_not_fetched", job_id=attempt.row.id, error=describe(error, limit=500))
            return None, error
