"""Totals of all time, without reading all of `job_stats` each time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.domain.window import SMALLEST_STEP, bucket_start
from pgq_core.metrics.figures import Totals
from pgq_core.metrics.labels import Labels
from pgq_core.queries import Queries
from pgq_core.queries.metrics import StatTotalsRow

RECENT: Final = timedelta(minutes=10)
"""Buckets that are read each time."""
BASE_EVERY: Final = 60.0
_LONGEST_BASE: Final = 1800.0
_SHARE: Final = 30
"""The whole table is read no more often than so many times as long as it takes."""


class TotalsMemory:
    """Old buckets are summed once a minute, the newest minutes each time: disjoint rows, so nothing is counted twice.

    A run that is written late into an old bucket (its worker had lost the database) counts from the next base on.
    Statistics older than an hour are rolled up into buckets that begin earlier, so a base has to be renewed well
    before its edge is that old.
    """

    def __init__(self, queries: Queries, labels: Labels, *, base_every: float = BASE_EVERY) -> None:
        self._queries = queries
        self._labels = labels
        self._base_every = base_every
        self._base: list[StatTotalsRow] = []
        self._edge: datetime | None = None
        self._renew_at = float("-inf")

    async def read(self, conn: AsyncConnection[Any], now: datetime) -> Mapping[str, Totals]:
        """By label."""
        if self._edge is None or time.monotonic() >= self._renew_at:
            await self._renew(conn, now)
        recent = await self._sums(conn, since=self._edge, before=None)
        self._labels.take_up(row.queue for row in (*self._base, *recent) if row.queue is not None)
        return self._labelled((*self._base, *recent))

    async def _renew(self, conn: AsyncConnection[Any], now: datetime) -> None:
        edge = bucket_start(now - RECENT, SMALLEST_STEP)
        began_at = time.monotonic()
        self._base = await self._sums(conn, since=None, before=edge)
        took = time.monotonic() - began_at
        self._edge = edge
        self._renew_at = began_at + min(max(self._base_every, _SHARE * took), _LONGEST_BASE)

    async def _sums(
        self, conn: AsyncConnection[Any], *, since: datetime | None, before: datetime | None
    ) -> list[StatTotalsRow]:
        statement = self._queries.sum_stats(since=since, before=before, known=self._labels.names, most=self._labels.cap)
        return await statement.fetch_all(conn)

    def _labelled(self, rows: Iterable[StatTotalsRow]) -> dict[str, Totals]:
        totals: dict[str, Totals] = {}
        for row in rows:
            label = self._labels.of(row.queue)
            totals[label] = totals.get(label, Totals()) + Totals.of(row)
        return totals
