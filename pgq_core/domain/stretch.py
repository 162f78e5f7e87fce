"""Positions and stretches of the claim order: priority descending, then due time, then id."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from pgq_core.domain.job import MAX_PRIORITY, MIN_PRIORITY


class Position(NamedTuple):
    """A place in the claim order, as the claim index holds it.

    `level` is the negated priority, `due` the job's not_before in seconds since 1970.

    >>> Position(-10, 0.0, 7) < Position(0, 0.0, 1) < Position(0, 0.5, 1)
    True
    """

    level: int
    due: float
    id: int


class Stretch(NamedTuple):
    """Everything behind `after`, up to and including `until`."""

    after: Position
    until: Position


_LAST_ID: Final = 2**63 - 1


def before_level(level: int) -> Position:
    """In front of all jobs of that level and of those that follow."""
    return Position(level, -math.inf, 0)


def end_of_level(level: int) -> Position:
    """Behind all jobs of that level and of those before it."""
    return Position(level, math.inf, _LAST_ID)


FIRST_LEVEL: Final = -MAX_PRIORITY
LAST_LEVEL: Final = -MIN_PRIORITY
WHOLE_QUEUE: Final = Stretch(before_level(FIRST_LEVEL), end_of_level(LAST_LEVEL))
