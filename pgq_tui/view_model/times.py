"""Durations, ages and clock times as short text; every function takes the time, none asks a clock."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, tzinfo

MISSING = "–"
FOREVER = "∞"

_SECOND_MS = 1_000
_TWO_DECIMALS_MS = 9_995
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_MANY_DAYS = 100
_DAYS_WITH_NAME = 6


def format_duration(value: float | timedelta | None) -> str:
    """How long something ran, in three or four digits whatever the size.

    >>> [format_duration(s) for s in (0.088, 4.02, 41.23, 130, 7800, 273_600)]
    ['88ms', '4.02s', '41.2s', '2m10s', '2h10m', '3d4h']
    >>> [format_duration(s) for s in (0, 0.0004, 0.9996, 9.996, 59.96, None, float("inf"))]
    ['0ms', '<1ms', '1.00s', '10.0s', '1m00s', '–', '∞']
    """
    seconds = _seconds(value)
    if seconds is None or not math.isfinite(seconds):
        return FOREVER if seconds == math.inf else MISSING
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    milliseconds = round(seconds * 1000)
    if milliseconds < _SECOND_MS:
        return f"{milliseconds}ms" if milliseconds or not seconds else "<1ms"
    if milliseconds < _TWO_DECIMALS_MS:
        return f"{seconds:.2f}s"
    return f"{seconds:.1f}s" if round(seconds, 1) < _MINUTE else format_span(seconds)


def format_span(value: float | timedelta | None) -> str:
    """How long something waits or lives, in whole units: the last digit need not run.

    >>> [format_span(s) for s in (0.4, 3, 130, 542, 7800, 273_600, 9e6, None)]
    ['0s', '3s', '2m10s', '9m02s', '2h10m', '3d4h', '104d', '–']
    """
    seconds = _seconds(value)
    if seconds is None or not math.isfinite(seconds):
        return FOREVER if seconds == math.inf else MISSING
    if seconds < 0:
        return f"-{format_span(-seconds)}"
    whole = round(seconds) if seconds >= 1 else 0
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"
    days = whole // _DAY
    return f"{days}d" if days >= _MANY_DAYS else f"{days}d{whole % _DAY // _HOUR}h"


def format_coarse(value: float | timedelta | None) -> str:
    """One unit only, for narrow columns and sentences.

    >>> [format_coarse(s) for s in (0.2, 59, 185, 7300, 273_600, None)]
    ['0s', '59s', '3m', '2h', '3d', '–']
    """
    seconds = _seconds(value)
    if seconds is None or not math.isfinite(seconds):
        return FOREVER if seconds == math.inf else MISSING
    whole = max(0, int(seconds))
    for size, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if whole >= size:
            return f"{whole // size}{letter}"
    return f"{whole}s"


def format_age(value: float | timedelta | None) -> str:
    """How long ago something was; a clock that runs ahead makes it "now", not a negative age.

    >>> [format_age(s) for s in (-5, 0.4, 4, 185, 7300, None)]
    ['now', 'now', '4s ago', '3m ago', '2h ago', '–']
    """
    seconds = _seconds(value)
    if seconds is None:
        return MISSING
    return "now" if seconds < 1 else f"{format_coarse(seconds)} ago"


def format_until(value: float | timedelta | None) -> str:
    """How soon something will be.

    >>> [format_until(s) for s in (48, 840, 0, -3, None)]
    ['in 48s', 'in 14m00s', 'now', 'now', '–']
    """
    seconds = _seconds(value)
    if seconds is None:
        return MISSING
    return "now" if seconds < 1 else f"in {format_span(seconds)}"


def format_clock(at: datetime | None, zone: tzinfo | None = None, *, milliseconds: bool = False) -> str:
    """Wall clock to the second, or to the millisecond for lines that come fast.

    >>> from datetime import UTC
    >>> at = datetime(2026, 3, 1, 12, 4, 31, 204_900, tzinfo=UTC)
    >>> format_clock(at), format_clock(at, milliseconds=True), format_clock(None)
    ('12:04:31', '12:04:31.204', '–')
    """
    if at is None:
        return MISSING
    local = at.astimezone(zone) if zone else at
    return f"{local:%H:%M:%S}" + (f".{local.microsecond // 1000:03d}" if milliseconds else "")


def format_when(at: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """The day or the time of a moment, whichever says more: five or six cells.

    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 5, 12, 4, tzinfo=UTC)
    >>> [format_when(now - timedelta(hours=h), now) for h in (1, 30, 24 * 20, 24 * 400)]
    ['11:04', 'Wed', '13 Feb', '2025']
    """
    if at is None:
        return MISSING
    local, today = (at.astimezone(zone), now.astimezone(zone)) if zone else (at, now)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    if abs((local.date() - today.date()).days) <= _DAYS_WITH_NAME:
        return f"{local:%a}"
    return f"{local.day} {local:%b}" if local.year == today.year else f"{local:%Y}"


def format_stamp(at: datetime | None, zone: tzinfo | None = None) -> str:
    """Date and time in full, for details.

    >>> from datetime import UTC
    >>> format_stamp(datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC))
    '2026-03-05 12:04:31 UTC'
    """
    if at is None:
        return MISSING
    local = at.astimezone(zone) if zone else at
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname() or ''}".rstrip()


def _seconds(value: float | timedelta | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else value
