"""Retention: nothing is kept for ever but what still needs somebody. Small batches, so that nothing waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries, Statement

BATCH: Final = 1000
ENDED_WORKERS_KEPT: Final = timedelta(days=1)
ENDED_WORKERS_AT_MOST: Final = 500
STATISTICS_KEPT: Final = timedelta(days=90)


class Retention(Duty):
    """Resolved dead letters, expired and orphaned keys, ended workers, sleepers that are gone, old statistics."""

    name = "retention"

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float, dead_letters_kept: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._dead_letters_kept = timedelta(seconds=dead_letters_kept)
        self._last_key = ""

    async def work(self, conn: AsyncConnection[Any]) -> None:
        await self._queries.prune_waits().execute(conn)
        await self._queries.prune_workers(kept=ENDED_WORKERS_KEPT, keep=ENDED_WORKERS_AT_MOST).execute(conn)
        batches: dict[str, Statement[None]] = {
            "dead_letters": self._queries.prune_dead_letters(kept=self._dead_letters_kept, limit=BATCH),
            "keys": self._queries.prune_keys(limit=BATCH),
            "statistics": self._queries.prune_stats(kept=STATISTICS_KEPT, limit=BATCH),
        }
        for what, statement in batches.items():
            deleted = await statement.execute(conn)
            if deleted:
                self._logger.info("rows_pruned", what=what, count=deleted)
            if deleted >= BATCH:
                self.nudge()
        await self._release_orphan_keys(conn)

    async def _release_orphan_keys(self, conn: AsyncConnection[Any]) -> None:
        """One window of the keys a turn; after the last one it begins anew."""
        last = await self._queries.release_orphan_keys(after=self._last_key, limit=BATCH).fetch_one(conn)
        self._last_key = last or ""
