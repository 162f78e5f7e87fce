"""What `job_stats` said so far, so that a tick reads only the buckets that can still change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.domain.histogram import Cells, add_cells, percentile
from pgq_core.domain.snapshot import StatsPoint
from pgq_core.domain.window import bucket_start, bucket_starts
from pgq_core.queries.reads import StatsRow

# Runs are counted in the bucket of the moment they finished, by a statement that may commit seconds later.
LATE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Sums:
    """Finished runs over some buckets."""

    succeeded: int
    retried: int
    dead: int
    lost: int
    dropped: int
    put_back: int
    durations: Cells

    @property
    def finished(self) -> int:
        return self.left_for_good + self.retried + self.lost + self.put_back

    @property
    def failed(self) -> int:
        return self.retried + self.dead + self.lost

    @property
    def left_for_good(self) -> int:
        return self.succeeded + self.dead + self.dropped

    @property
    def failure_share(self) -> float | None:
        judged = self.succeeded + self.failed
        return self.failed / judged if judged else None

    def percentile(self, share: float) -> float | None:
        return percentile(self.durations, share)


def sum_up(rows: Sequence[StatsRow]) -> Sums:
    return Sums(
        succeeded=sum(row.succeeded for row in rows),
        retried=sum(row.retried for row in rows),
        dead=sum(row.dead for row in rows),
        lost=sum(row.lost for row in rows),
        dropped=sum(row.dropped for row in rows),
        put_back=sum(row.put_back for row in rows),
        durations=add_cells(row.durations for row in rows),
    )


def finished(row: StatsRow) -> int:
    return row.succeeded + row.retried + row.dead + row.lost + row.dropped + row.put_back


class StatsMemory:
    """Buckets of one step over one span. Reads are asked for at most once per `pause`."""

    def __init__(self, span: timedelta, step: timedelta, *, pause: timedelta = timedelta(0)) -> None:
        self.span = span
        self.step = step
        self._pause = pause
        self._buckets: dict[datetime, dict[str, StatsRow]] = {}
        self._points: dict[datetime, StatsPoint] = {}
        self._read_at: datetime | None = None

    def wanted_since(self, now: datetime) -> datetime | None:
        """From which bucket on to read now; None when the last read is fresh enough."""
        oldest = bucket_start(now - self.span, self.step)
        if self._read_at is None or now < self._read_at:  # never read, or the clock was set back
            return oldest
        if now - self._read_at < self._pause:
            return None
        return max(oldest, bucket_start(self._read_at - LATE, self.step))

    def learn(self, since: datetime, now: datetime, rows: Iterable[StatsRow]) -> None:
        """Takes over what was read from bucket `since` on, and forgets what left the span."""
        oldest = bucket_start(now - self.span, self.step)
        self._buckets = {at: queues for at, queues in self._buckets.items() if oldest <= at < since}
        self._points = {at: point for at, point in self._points.items() if oldest <= at < since}
        for row in rows:
            self._buckets.setdefault(row.at, {})[row.queue] = row
        self._read_at = now

    def over(self, since: datetime, *, queue: str | None = None) -> Sums:
        """All runs in buckets that start at `since` or later, of one queue or of all."""
        return sum_up(list(self._rows(since, queue)))

    def finished_per_bucket(self, queue: str, *, now: datetime, span: timedelta, step: timedelta) -> tuple[int, ...]:
        """How many runs of a queue finished in each bucket of `step`, oldest first."""
        starts = bucket_starts(now - span, now, step)
        counts = dict.fromkeys(starts, 0)
        for row in self._rows(starts[0], queue):
            # The statistics are read a moment after `now` was: they may hold a bucket that has begun in between.
            counts[min(bucket_start(row.at, step), starts[-1])] += finished(row)
        return tuple(counts.values())

    def points(self, *, now: datetime, window: timedelta) -> tuple[StatsPoint, ...]:
        """The chart of all queues: one point per bucket, the empty ones too."""
        return tuple(self._point(at) for at in bucket_starts(now - window, now, self.step))

    def _point(self, at: datetime) -> StatsPoint:
        """Summed up once, and again only after its bucket was read again."""
        if at not in self._points:
            self._points[at] = self._summed_point(at)
        return self._points[at]

    def _summed_point(self, at: datetime) -> StatsPoint:
        sums = sum_up(list(self._buckets.get(at, {}).values()))
        return StatsPoint(
            at=at,
            seconds=self.step.total_seconds(),
            succeeded=sums.succeeded,
            retried=sums.retried,
            dead=sums.dead,
            lost=sums.lost,
            other=sums.dropped + sums.put_back,
            p50=sums.percentile(0.5),
            p95=sums.percentile(0.95),
        )

    def _rows(self, since: datetime, queue: str | None) -> Iterator[StatsRow]:
        for at, queues in self._buckets.items():
            if at < since:
                continue
            if queue is None:
                yield from queues.values()
            elif queue in queues:
                yield queues[queue]
