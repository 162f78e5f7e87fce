"""Where this worker's claims of one queue begin: a lower bound per priority that moves on with what was claimed.

Without it each claim walks over the index entries of all jobs that were claimed before and that vacuum has not removed
yet. While somebody holds a snapshot open it can remove none, and a claim would walk over millions (measured: the rate
falls to less than half in seconds).

A bound says: whatever lay in front of it, and could be seen, is claimed. What appears there later (a commit that came
late, a job handed back, a raised priority) is found by the sweep.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from pgq_core.domain.stretch import FIRST_LEVEL, WHOLE_QUEUE, Position, Stretch, before_level, end_of_level
from pgq_core.queries.claims import ClaimedRow

TRAIL: Final = 0.2
"""Seconds of due time by which a bound trails the clock: transactions that are as long need no sweep."""
MOST_LEVELS: Final = 16
"""Priorities that have a bound of their own; others share the walk of the one before them."""
MARK_EVERY: Final = 5000
"""Claimed jobs between two marks, at which a sweep may be cut into slices."""
MOST_PARTS: Final = 64
_SPANS: Final = (1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0)
"""Seconds before its end at which a stretch without a beginning is cut."""


class Level:
    """One priority: its bound, and marks that the bound has passed."""

    __slots__ = ("bound", "claimed", "marks")

    def __init__(self, bound: Position) -> None:
        self.bound = bound
        self.marks: list[Position] = []
        self.claimed = 0
        """Jobs claimed since the last mark."""

    def move(self, to: Position, claimed: int) -> None:
        self.claimed += claimed
        if to > self.bound:
            self.bound = to
            if self.claimed >= MARK_EVERY:
                self.marks.append(to)
                self.claimed = 0

    def rewind(self, to: Position) -> None:
        self.bound = min(self.bound, to)
        while self.marks and self.marks[-1] >= self.bound:
            self.marks.pop()


class Frontier:
    """The bounds of all priorities of one queue."""

    def __init__(self) -> None:
        self.levels: dict[int, Level] = {}

    def reset(self) -> None:
        """The next claim begins at the very first job again."""
        self.levels.clear()

    def stretches(self) -> Sequence[Stretch]:
        """What a claim has to look through: behind each bound, and wherever no priority was ever met."""
        if not self.levels:
            return (WHOLE_QUEUE,)
        levels = sorted(self.levels)
        starts = [self.levels[level].bound for level in levels]
        behind = [
            Stretch(start, end_of_level(following - 1)) for start, following in zip(starts, levels[1:], strict=False)
        ]
        last = Stretch(starts[-1], WHOLE_QUEUE.until)
        if levels[0] == FIRST_LEVEL:
            return (*behind, last)
        return (Stretch(WHOLE_QUEUE.after, end_of_level(levels[0] - 1)), *behind, last)

    def skipped(self) -> Sequence[Stretch]:
        """What `stretches` leaves out, cut at the marks."""
        found: list[Stretch] = []
        for level in sorted(self.levels):
            cuts = [before_level(level), *self.levels[level].marks, self.levels[level].bound]
            found += [Stretch(after, until) for after, until in pairwise(cuts) if after < until]
        return found

    def cut(self, stretch: Stretch, parts: int) -> None:
        """It takes long to walk: the next look at what is skipped sees it in so many parts."""
        level = self.levels.get(stretch.until.level)
        if level is not None:
            level.marks = sorted({*level.marks, *_cuts(stretch, min(parts, MOST_PARTS))})
            while level.marks and level.marks[-1] >= level.bound:
                level.marks.pop()

    def forget_marks(self) -> None:
        """What lies in front of the bounds is quick to walk: it needs no slices."""
        for level in self.levels.values():
            level.marks.clear()
            level.claimed = 0

    def advance(self, rows: Sequence[ClaimedRow], *, is_full: bool, now: float) -> None:
        """After a claim of `stretches()`, or of the whole queue.

        `rows` are in claim order; `is_full`: there may be more of them. `now` is the database's time when the claim
        began, or earlier. A clock that was set back takes the bounds back with it.
        """
        latest = now - TRAIL
        claimed = Counter([-row.priority for row in rows])
        last = -rows[-1].priority if is_full and rows else None
        for number in claimed:
            if number not in self.levels:
                self.levels[number] = Level(before_level(number))
        for number, level in self.levels.items():
            if last is None or number < last:
                level.move(Position(number, latest, 0), claimed[number])
            elif number == last:
                row = rows[-1]
                level.move(min(Position(number, row.not_before, row.id), Position(number, latest, 0)), claimed[number])
            if level.bound.due > latest:
                level.rewind(Position(number, latest, 0))
        self._keep_few(claimed)

    def rewind(self, rows: Sequence[ClaimedRow]) -> None:
        """A sweep found more than it could take: claims go on from there."""
        last = rows[-1]
        level = self.levels.get(-last.priority)
        if level is not None:
            level.rewind(Position(-last.priority, last.not_before, last.id))

    def _keep_few(self, used: Mapping[int, int]) -> None:
        for number in list(self.levels):
            if len(self.levels) <= MOST_LEVELS:
                return
            if number not in used:
                del self.levels[number]
        for number in list(self.levels)[: len(self.levels) - MOST_LEVELS]:
            del self.levels[number]


def _cuts(stretch: Stretch, parts: int) -> list[Position]:
    """Where to cut it. Jobs of one big insert share their due time, and lie in the order of their ids."""
    after, until = stretch
    if after.due == -math.inf:
        return [Position(until.level, until.due - span, 0) for span in _SPANS]
    shares = [number / parts for number in range(1, parts)]
    if after.due < until.due:
        dues = {after.due + (until.due - after.due) * share for share in shares}
        return [Position(until.level, due, 0) for due in {*dues, until.due}]
    return [Position(until.level, until.due, after.id + int((until.id - after.id) * share)) for share in shares]
