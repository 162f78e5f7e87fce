"""The look in front of the bounds: what came there late is found within a second, at a bounded price.

That part of the index is quick to walk as a rule, and then it is walked at once. Where it is not (vacuum cannot remove
what was claimed there), it is walked in slices of a few milliseconds, by one process per queue, and never for more than
a fiftieth of the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Final

from pgq_core.domain.rest import SHARE
from pgq_core.domain.stretch import Stretch
from pgq_core.worker.frontier import Frontier

EVERY: Final = 0.4
"""Seconds between the beginnings of two rounds."""
QUICK: Final = 0.003
"""Seconds. A round that takes no longer needs no turn: every process may make its own."""
SLICE: Final = 0.015
"""Seconds that a slice should take."""
LONGEST_SLICE: Final = 0.02
_GUESS: Final = 0.004
"""Seconds that a stretch may take which was never walked."""
_LEAST: Final = 1e-6
"""Seconds that any walk takes, whatever the clock says: shares of a planned cost of 0 would be none."""
_FORGOTTEN_AFTER: Final = 2.0
"""Seconds after which a quick round says nothing any more: others may have claimed a million jobs meanwhile."""


class Sweep:
    """Plans the slices of one queue. Times are seconds of any steady clock."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._next_at = 0.0
        self._began_at = 0.0
        self._ended_at = -_FORGOTTEN_AFTER
        self._costs: dict[Stretch, float] = {}
        """Seconds that each stretch took when a round walked it last, or may take."""
        self._costs_again: dict[Stretch, float] = {}
        """The same of the slices in between, which put other stretches together."""
        self._rest: list[Stretch] = []
        """Not yet walked in this round."""
        self._is_again = False
        """This slice is none of the round."""
        self._spent = 0.0
        self._was_quick = False
        self.looked_at = time.monotonic()
        """When all that lies in front of the bounds had been walked, or was known to be another process's."""
        self.last_round: float | None = None
        """Seconds from the beginning to the end of the last whole round."""

    def is_due(self, now: float) -> bool:
        return now >= self._next_at

    def is_overdue(self, now: float) -> bool:
        return now >= self._next_at + EVERY / 2

    def is_quick(self, now: float) -> bool:
        """Whether the last round was quick, and is not long ago."""
        return self._was_quick and now - self._ended_at < _FORGOTTEN_AFTER

    def next_slice(self, now: float) -> Sequence[Stretch]:
        """What to walk now; empty when nothing is skipped.

        The newest first, and every other slice of a long round goes there again: most of what appears in front of a
        bound (a commit that took long, a job handed back, a retry) is due just before it.
        """
        self._is_again = bool(self._rest) and not self._is_again
        if self._is_again:
            self._costs_again, newest = self._planned(self._costs_again, now)
            return _as_many_as_fit(newest, self._costs_again)
        if not self._rest:
            self._began_at, self._spent = now, 0.0
            self._costs, self._rest = self._planned(self._costs, now)
        chosen = _as_many_as_fit(self._rest, self._costs)
        if not chosen:
            self._end_round(now)
        return chosen

    def _planned(self, known: Mapping[Stretch, float], now: float) -> tuple[dict[Stretch, float], list[Stretch]]:
        """All that is skipped, the newest first, and what each may cost."""
        stretches = sorted(self._frontier.skipped(), key=lambda stretch: stretch.until.due, reverse=True)
        guess = QUICK / max(len(stretches), 1) if self.is_quick(now) else _GUESS
        return {stretch: known.get(stretch, guess) for stretch in stretches}, stretches

    def walked(self, stretches: Sequence[Stretch], seconds: float, now: float) -> None:
        """Nothing more is to be found there, and the look took so long."""
        costs = self._costs_again if self._is_again else self._costs
        planned = sum(costs[stretch] for stretch in stretches)
        for stretch in stretches:
            costs[stretch] *= max(seconds, _LEAST) / planned
        if seconds > LONGEST_SLICE:
            dearest = max(stretches, key=costs.__getitem__)
            self._frontier.cut(dearest, parts=math.ceil(costs[dearest] / SLICE) + 1)
        self._spent += seconds
        self._next_at = now + seconds / SHARE
        if self._is_again:
            return
        del self._rest[: len(stretches)]
        if not self._rest:
            self._end_round(now)

    def began_at_the_start(self, seconds: float, now: float) -> None:
        """A claim that looked everywhere, and found nothing, took so long: that was a round too."""
        self._rest.clear()
        self._began_at, self._spent = now - seconds, seconds
        self._next_at = now + seconds / SHARE
        self._end_round(now)

    def put_off(self, now: float) -> None:
        """Another process sweeps this queue, or the claims begin anew where this round found too much."""
        self.looked_at = now
        self._rest.clear()
        self._next_at = now + EVERY

    def hurry(self) -> None:
        """Something was put in front of the bounds just now."""
        self._rest.clear()
        self._next_at = 0.0

    def _end_round(self, now: float) -> None:
        self._ended_at = self.looked_at = now
        self.last_round = now - self._began_at
        self._was_quick = self._spent <= QUICK
        if self._was_quick:
            self._frontier.forget_marks()
        self._next_at = max(self._next_at, self._began_at + EVERY)


def _as_many_as_fit(stretches: Sequence[Stretch], costs: Mapping[Stretch, float]) -> list[Stretch]:
    chosen: list[Stretch] = []
    planned = 0.0
    for stretch in stretches:
        planned += costs[stretch]
        if chosen and planned > SLICE:
            break
        chosen.append(stretch)
    return chosen
