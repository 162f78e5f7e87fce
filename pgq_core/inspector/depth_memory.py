"""How deep queues are: counted up to a cap, estimated above it, and remembered for a while where counting is dear."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from pgq_core.domain.snapshot import DEPTH_CAP, Count
from pgq_core.queries.reads import DepthEstimateRow, QueueRow

COUNT_AGAIN_AFTER = timedelta(seconds=10)
"""How long the estimate of a deep queue serves before it is counted again."""

INFLOW_SPAN = timedelta(seconds=60)
INFLOW_LEAST = timedelta(seconds=15)


class Depth(StrEnum):
    """The states of a queue that can grow without bound. Values as `estimate_depths` names them."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    DEAD = "dead"


class DepthMemory:
    """Which queues were deeper than the cap, and how deep all of them were over the last minute."""

    def __init__(self) -> None:
        self._estimates: dict[tuple[Depth, str], tuple[datetime, Count]] = {}
        self._samples: deque[tuple[datetime, Mapping[str, int]]] = deque()

    def deep(self, state: Depth, now: datetime) -> list[str]:
        """The queues that need not be counted now, since they were too deep a moment ago."""
        return [
            queue
            for (kept, queue), (counted_at, _) in self._estimates.items()
            if kept is state and timedelta(0) <= now - counted_at < COUNT_AGAIN_AFTER
        ]

    def learn_estimates(self, rows: Sequence[QueueRow], estimates: Iterable[DepthEstimateRow], now: datetime) -> None:
        """Writes down how deep the queues are about that were just found beyond the cap."""
        for estimate in estimates:
            state = Depth(estimate.state)
            counted = {row.name: counted_rows(row, state) for row in rows}
            deep = [name for name, count in counted.items() if count > DEPTH_CAP]
            known = sum(count for count in counted.values() if count <= DEPTH_CAP)
            known += sum(self._estimates[state, name][1].value for name in self.deep(state, now))
            for name, value in share_out(estimate, deep, known).items():
                self._estimates[state, name] = (now, Count(max(value, DEPTH_CAP), exact=False))

    def count(self, row: QueueRow, state: Depth, *, skipped: Sequence[str]) -> Count:
        counted = counted_rows(row, state)
        if row.name in skipped or counted > DEPTH_CAP:
            kept = self._estimates.get((state, row.name))
            return kept[1] if kept else Count(DEPTH_CAP, exact=False)
        self._estimates.pop((state, row.name), None)
        return Count(counted)

    def remember(self, now: datetime, depths: Mapping[str, int]) -> None:
        """Keeps the exact depths of this tick for the inflow."""
        if self._samples and now <= self._samples[-1][0]:
            self._samples.clear()
        self._samples.append((now, depths))
        while self._samples and now - self._samples[0][0] > INFLOW_SPAN:
            self._samples.popleft()

    def growth(self, queue: str, now: datetime) -> tuple[datetime, float] | None:
        """(since when, jobs more than then), where the queue's depth was exact then and is now; else None."""
        current = self._samples[-1][1].get(queue) if self._samples else None
        if current is None:
            return None
        for at, depths in self._samples:
            if queue in depths and at < now and now - at >= INFLOW_LEAST:
                return at, current - depths[queue]
        return None


def counted_rows(row: QueueRow, state: Depth) -> int:
    return {
        Depth.PENDING: row.pending,
        Depth.SCHEDULED: row.scheduled,
        Depth.WAITING: row.waiting,
        Depth.DEAD: row.dead,
    }[state]


def share_out(estimate: DepthEstimateRow, deep: Sequence[str], known: int) -> dict[str, int]:
    """What is left of the estimated total after the counted queues, shared as the planner's statistics share the table.

    >>> share_out(DepthEstimateRow("pending", 1000, ["a", "b"], [0.6, 0.2]), ["a", "b"], 200)
    {'a': 600, 'b': 200}
    """
    common = dict(zip(estimate.queues, estimate.shares, strict=True))
    shares = {name: common.get(name, 0.0) for name in deep}
    whole = sum(shares.values())
    if not whole:
        shares, whole = dict.fromkeys(deep, 1.0), float(len(deep))
    rest = max(estimate.total - known, 0)
    return {name: round(rest * share / whole) for name, share in shares.items()}
