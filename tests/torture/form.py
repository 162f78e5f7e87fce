"""Short and long form of a run: the same fault and the same rule, a tenth of the time."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("TORTURE") == "long"
NAME = "long" if IS_LONG else "short"


def seconds(long: float, short: float | None = None) -> float:
    """`short` where a tenth would be too little for the fault to show."""
    if IS_LONG:
        return long
    return long / 10 if short is None else short


def count(long: int, short: int | None = None) -> int:
    if IS_LONG:
        return long
    return long // 10 if short is None else short
