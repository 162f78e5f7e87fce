"""Chance, taken out of the retry delays of tests."""

from __future__ import annotations

from random import Random


class FixedJitter(Random):
    """Draws the same share of every range: 1.0 the longest delay, 0.0 none.

    >>> FixedJitter(0.5).uniform(0.0, 8.0)
    4.0
    """

    def __init__(self, share: float) -> None:
        super().__init__(0)
        self.share = share

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * self.share
