"""What a chart over time shows, as one immutable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_tui.view_model.palette import Token


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One quantity: a value per bucket (None = not known), its meaning and its fill.

    Series differ by fill as well as by colour, so that they can be told apart without colours.
    """

    name: str
    token: Token
    values: tuple[float | None, ...]
    fill: str = "█"
    ascii_fill: str = "#"


@dataclass(frozen=True, slots=True)
class ChartMark:
    """Something that happened at a moment, such as a deployment or a pause."""

    at: datetime
    label: str
    token: Token = Token.LINK


@dataclass(frozen=True, slots=True)
class ChartData:
    """Values in buckets of equal length; `times` are their starts, ascending, all aware of their zone.

    `series` are stacked in their order, the first at the bottom. `lines` are drawn over the stack. The picture
    ends at `now` and reaches back by `window`; the axis speaks the time zone of `now`.
    """

    times: tuple[datetime, ...]
    bucket: timedelta
    now: datetime
    window: timedelta
    series: tuple[ChartSeries, ...] = ()
    lines: tuple[ChartSeries, ...] = ()
    marks: tuple[ChartMark, ...] = ()
    empty: str = "nothing has run in this window"

    @property
    def has_values(self) -> bool:
        """Whether there is anything to draw: a stack that is all zero still is a picture."""
        return any(value is not None for one in (*self.series, *self.lines) for value in one.values)

    @property
    def phase(self) -> float:
        """Where the buckets lie between whole multiples of their length; columns take the same places."""
        return self.times[0].timestamp() % self.bucket.total_seconds() if self.times else 0.0

    @property
    def end(self) -> float:
        """Where the picture ends, in seconds: at the end of the last bucket while that is fresh, else now."""
        now = self.now.timestamp()
        if not self.times:
            return now
        bucket = self.bucket.total_seconds()
        last = self.times[-1].timestamp() + bucket
        return last if abs(now - last) <= 2 * bucket else now


def value_at(series: ChartSeries, index: int) -> float | None:
    """The value of a bucket; None outside the buckets.

    >>> value_at(ChartSeries("ok", Token.OK, (1.0, 2.0)), -1), value_at(ChartSeries("ok", Token.OK, ()), 0)
    (2.0, None)
    """
    return series.values[index] if -len(series.values) <= index < len(series.values) else None


def bucket_index(times: Sequence[datetime], bucket: timedelta, at: datetime) -> int | None:
    """The bucket that holds a moment.

    >>> from datetime import UTC
    >>> start = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    >>> times = [start, start + timedelta(seconds=5)]
    >>> [bucket_index(times, timedelta(seconds=5), start + timedelta(seconds=s)) for s in (-1, 0, 9, 10)]
    [None, 0, 1, None]
    """
    for index in range(len(times) - 1, -1, -1):
        if times[index] <= at:
            return index if at < times[index] + bucket else None
    return None
