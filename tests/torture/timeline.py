"""The rate of finished jobs over time, computed afterwards from the runs themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

BACK = 0.95
"""Share of the rate before at which a system counts as recovered."""
WINDOW = 2.0


class Timeline:
    """Times are seconds since the epoch."""

    def __init__(self, finished: Iterable[float]) -> None:
        self._times = sorted(finished)

    def rate(self, start: float, end: float) -> float:
        """Jobs a second in [start, end)."""
        return self.count(start, end) / max(end - start, 1e-9)

    def count(self, start: float, end: float) -> int:
        """Jobs in [start, end)."""
        return bisect_left(self._times, end) - bisect_left(self._times, start)

    def worst(self, start: float, end: float, window: float) -> float:
        """The lowest rate over any window that lies inside."""
        rates = [self.rate(*edges) for edges in _windows(start, end, window)]
        return min(rates, default=self.rate(start, end))

    def worst_share(self, offered: Timeline, start: float, end: float, window: float) -> float:
        """The lowest ratio to what was offered in the same window; 0 when nothing was offered at all."""
        shares = [
            self.rate(*edges) / offered.rate(*edges)
            for edges in _windows(start, end, window)
            if offered.rate(*edges) > 0
        ]
        return min(shares, default=0.0)

    def back_after(self, since: float, usual: float, *, until: float) -> float | None:
        """Seconds from `since` to the first window that has the usual rate again; None when there is none."""
        at = since
        while at + WINDOW <= until:
            if self.rate(at, at + WINDOW) >= BACK * usual:
                return at - since
            at += 0.1
        return None


def _windows(start: float, end: float, window: float) -> Iterator[tuple[float, float]]:
    at = start
    while at + window <= end:
        yield at, at + window
        at += min(window / 10, 0.5)
