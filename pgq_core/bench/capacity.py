"""Search for the capacity: the highest open-loop rate, producers included, at which the backlog does not grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

TRIAL_SECONDS: Final = 10.0
CONFIRM_SECONDS: Final = 60.0
PRECISION: Final = 0.05
_STEP_DOWN: Final = 0.97
_MOST_STEPS: Final = 20
_GROWTH: Final = 1.5


def find_capacity(
    holds: Callable[[float, float], bool],
    start: float,
    *,
    trial: float = TRIAL_SECONDS,
    confirm: float = CONFIRM_SECONDS,
) -> float:
    """`holds(rate, seconds)` says whether the backlog stays; `start` is a first guess.

    Short trials close in on the rate to 5 %, a long one confirms it; each that fails lowers the rate by 3 %.

    >>> round(find_capacity(lambda rate, seconds: rate <= 1000, 400))
    996
    """
    low, high = _bracket(holds, start, trial)
    while high / low > 1 + PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle, trial) else (low, middle)
    for _ in range(_MOST_STEPS):
        if holds(low, confirm):
            break
        low *= _STEP_DOWN
    return low


def _bracket(holds: Callable[[float, float], bool], start: float, trial: float) -> tuple[float, float]:
    """A rate that holds and a higher one that does not."""
    rate = start
    if holds(rate, trial):
        for _ in range(_MOST_STEPS):
            if not holds(rate * _GROWTH, trial):
                return rate, rate * _GROWTH
            rate *= _GROWTH
        return rate, rate
    for _ in range(_MOST_STEPS):
        lower = rate / _GROWTH
        if holds(lower, trial):
            return lower, rate
        rate = lower
    return rate, rate
