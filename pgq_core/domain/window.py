"""How a span of time is cut into the buckets of a chart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SMALLEST_STEP = timedelta(seconds=5)
"""The bucket of `job_stats` itself."""

MOST_POINTS = 240

WINDOWS: dict[str, timedelta] = {
    "1m": timedelta(minutes=1),
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}

_STEPS = tuple(
    timedelta(seconds=s) for s in (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
)
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


def bucket_step(window: timedelta) -> timedelta:
    """The smallest round step that cuts `window` into at most `MOST_POINTS` buckets.

    >>> [bucket_step(WINDOWS[name]).total_seconds() for name in ("1m", "15m", "1h", "7d")]
    [5.0, 5.0, 15.0, 3600.0]
    """
    return next((step for step in _STEPS if window <= step * MOST_POINTS), _STEPS[-1])


def bucket_start(at: datetime, step: timedelta) -> datetime:
    """The start of the bucket that holds `at`, as `date_bin(step, at, '2000-01-01 00:00+00')` gives it."""
    return at - (at - _ORIGIN) % step


def bucket_starts(since: datetime, until: datetime, step: timedelta) -> list[datetime]:
    """The starts of all buckets from the one that holds `since` up to the one that holds `until`."""
    first = bucket_start(since, step)
    count = (bucket_start(until, step) - first) // step + 1
    return [first + step * n for n in range(count)]
