"""How long to wait before the next try to reach the database."""

from __future__ import annotations

import random

FIRST = 0.5
LONGEST = 10.0
_EXPONENT_CAP = 10


def retry_delay(failures: int, *, draw: float | None = None) -> float:
    """Twice as long each time up to ten seconds; a quarter of it is chance, so that many consoles do not come at once.

    >>> [retry_delay(n, draw=0.0) for n in (1, 2, 3, 9, 10_000)]
    [0.5, 1.0, 2.0, 10.0, 10.0]
    >>> retry_delay(9, draw=1.0)
    7.5
    """
    longest = min(FIRST * 2 ** min(max(failures, 1) - 1, _EXPONENT_CAP), LONGEST)
    chance = random.random() if draw is None else draw  # noqa: S311 - spreads load, protects nothing
    return float(longest * (1 - 0.25 * chance))
