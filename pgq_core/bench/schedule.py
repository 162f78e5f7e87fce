"""Send times fixed in advance: a load that does not slow down because the queue does (no coordinated omission)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Batch(NamedTuple):
    """Jobs `first` to `stop` - 1 leave together, `at` seconds after the start, whatever became of those before."""

    at: float
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """`rate` jobs a second for `seconds`, in batches every `tick` seconds.

    >>> list(Schedule(rate=250, seconds=0.02).batches())
    [Batch(at=0.0, first=0, stop=2), Batch(at=0.01, first=2, stop=5)]
    """

    rate: float
    seconds: float
    tick: float = 0.01

    @property
    def jobs(self) -> int:
        return self._before(self._ticks)

    def batches(self, *, producer: int = 0, producers: int = 1) -> Iterator[Batch]:
        """Those of one of several producers, which take turns."""
        for number in range(producer, self._ticks, producers):
            first, stop = self._before(number), self._before(number + 1)
            if stop > first:
                yield Batch(number * self.tick, first, stop)

    def offered(self, elapsed: float) -> int:
        """How many jobs should have been sent `elapsed` seconds after the start.

        >>> [Schedule(rate=100, seconds=1).offered(t) for t in (-1, 0, 0.5, 9)]
        [0, 1, 51, 100]
        """
        if elapsed < 0:
            return 0
        return self._before(min(self._ticks, int(elapsed / self.tick + 1e-9) + 1))

    @property
    def _ticks(self) -> int:
        return round(self.seconds / self.tick)

    def _before(self, number: int) -> int:
        return int(self.rate * self.tick * number + 1e-6)
