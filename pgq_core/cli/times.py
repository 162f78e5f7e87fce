"""Times and spans as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from pgq_core.cli.failures import UsageError

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_LONGEST = 100 * 366 * 86400


def parsed_span(text: str) -> timedelta:
    """
    >>> parsed_span("90"), parsed_span("1h30m"), parsed_span("250ms")
    (datetime.timedelta(seconds=90), datetime.timedelta(seconds=5400), datetime.timedelta(microseconds=250000))
    """
    given = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", given):
        seconds = float(given)
    elif _SPAN.fullmatch(given):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(given))
    else:
        raise UsageError(f"{text!r} is no span of time: write seconds, or for example 250ms, 90s, 15m, 2h, 1h30m, 7d")
    if seconds > _LONGEST:
        raise UsageError(f"{text!r} is longer than a hundred years")
    return timedelta(seconds=seconds)


def parsed_time(text: str) -> datetime:
    """An ISO time; without an offset it is UTC, since the database's clock is the only one that decides.

    >>> parsed_time("2026-03-04T05:06").isoformat()
    '2026-03-04T05:06:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is no time: write for example 2026-03-04T05:06:07+01:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
