"""Numbers about numbers: percentiles, medians with their spread, and how they are written."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; `ordered` ascends and is not empty.

    >>> percentile([1, 2, 3, 4], 0.5), percentile([1, 2, 3, 4], 0.99), percentile([7], 0.5)
    (2, 4, 7)
    """
    rank = -int(-share * len(ordered) // 1)  # rounded up
    return ordered[min(len(ordered), max(1, rank)) - 1]


def percentiles_of(values: Iterable[float], prefix: str) -> dict[str, float]:
    """p50, p95 and p99 by metric name; nothing for no values.

    >>> percentiles_of([0.3, 0.1, 0.2], "start")
    {'start_p50': 0.2, 'start_p95': 0.3, 'start_p99': 0.3}
    """
    ordered = sorted(values)
    if not ordered:
        return {}
    return {f"{prefix}_p{share}": percentile(ordered, share / 100) for share in (50, 95, 99)}


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several rounds, and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        """
        >>> str(Spread(1234.5, 1200.0, 1300.0)), str(Spread(0.5, 0.5, 0.5))
        ('1,234 (1,200–1,300)', '0.50')
        """
        if self.low == self.high:
            return short(self.median)
        return f"{short(self.median)} ({short(self.low)}–{short(self.high)})"


def short(number: float) -> str:
    """Three significant digits or all before the point.

    >>> short(12345.6), short(99.94), short(9.994), short(0)
    ('12,346', '99.9', '9.99', '0')
    """
    if number == 0:
        return "0"
    size = abs(number)
    if size >= 100:  # noqa: PLR2004 - three digits
        return f"{number:,.0f}"
    return f"{number:.1f}" if size >= 10 else f"{number:.2f}"  # noqa: PLR2004


def growth(samples: Sequence[tuple[float, float]]) -> float:
    """By how much the line through (time, value) samples rises from the first time to the last: least squares.

    >>> growth([(0.0, 10.0), (1.0, 12.0), (2.0, 14.0)])
    4.0
    """
    if len(samples) < 2:  # noqa: PLR2004 - a line needs two points
        return 0.0
    mean_time = statistics.fmean(time for time, _ in samples)
    mean_value = statistics.fmean(value for _, value in samples)
    spread = sum((time - mean_time) ** 2 for time, _ in samples)
    if spread == 0:
        return 0.0
    slope = sum((time - mean_time) * (value - mean_value) for time, value in samples) / spread
    return slope * (samples[-1][0] - samples[0][0])
