"""Short and long form of a run: the same fault and the same rule, a tenth of the time."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("TORTURE") == "long"
NAME = "long" if IS_LONG else "short"


def bound(limit: float) -> float:
    """A limit in seconds that is part of a promise: the long form, which has the machine to itself, judges it as it is.

    The short form runs beside others: with more than two programs per processor it grants in proportion more.
    """
    if IS_LONG:
        return limit
    return limit * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1) / 2)


def seconds(long: float, short: float | None = None) -> float:
    """`short` where a tenth would be too little for the fault to show."""
    if IS_LONG:
        return long
    return long / 10 if short is None else short


def count(long: int, short: int | None = None) -> int:
    if IS_LONG:
        return long
    return long // 10 if short is None else short
