"""Statements of the metrics: totals of all time, from tables that the workers fill anyway."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class StatTotalsRow:
    """Closed runs of one queue by outcome, with their durations and waits; `queue` None: all that are not named."""

    queue: str | None
    succeeded: int
    retried: int
    dead: int
    lost: int
    released: int
    snoozed: int
    cancelled: int
    discarded: int
    expired: int
    duration_seconds: float
    durations: list[int]
    waits: list[int]


@dataclass(frozen=True, slots=True)
class RunningRow:
    """The running jobs; `oldest_age` in seconds, 0 without any."""

    without_owner: int
    oldest_age: float


class MetricQueries(QueryGroup):
    def list_known_queues(self, *, most: int) -> Statement[str]:
        return self._statement("list_known_queues", str, most=most)

    def sum_stats(
        self, *, since: datetime | None, before: datetime | None, known: Collection[str], most: int
    ) -> Statement[StatTotalsRow]:
        return self._planned_anew(
            "sum_stats", StatTotalsRow, since=since, before=before, known=sorted(known), most=most
        )

    def read_running(self, *, stale_limit: timedelta) -> Statement[RunningRow]:
        return self._statement("read_running", RunningRow, stale_limit=stale_limit)

    def read_late_writes(self) -> Statement[int]:
        return self._statement("read_late_writes", int)
