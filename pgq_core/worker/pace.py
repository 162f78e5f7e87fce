"""How long jobs take, by running means: how many may be claimed ahead, and which plain functions may share a thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

HORIZON: Final = 0.1
"""Seconds of work that may wait in a worker's hands: more would starve other workers and be at risk in a crash."""
LARGEST_CLAIM: Final = 500
MOST_AHEAD: Final = 2 * LARGEST_CLAIM
"""One batch is worked on while the next one is on its way."""
_WEIGHT: Final = 0.05
_QUICK: Final = 0.001
_KNOWN_AFTER: Final = 10
_CHUNK_SECONDS: Final = 0.005
_LARGEST_CHUNK: Final = 50
_UNKNOWN: Final = (0.0, 0)
"""Mean seconds, and of how many runs."""


class Pace:
    """Fed with the duration of every run."""

    def __init__(self) -> None:
        self._all = _UNKNOWN
        self._by_type: dict[str, tuple[float, int]] = {}

    def add(self, runs: Iterable[tuple[str, float]]) -> None:
        """Job type and seconds of runs that have ended."""
        sums: dict[str, tuple[float, int]] = {}
        for job_type, seconds in runs:
            total, count = sums.get(job_type, (0.0, 0))
            sums[job_type] = (total + seconds, count + 1)
        for job_type, (total, count) in sums.items():
            self._all = _moved(self._all, total, count)
            self._by_type[job_type] = _moved(self._by_type.get(job_type, _UNKNOWN), total, count)

    def ahead(self, concurrency: int) -> int:
        """How many jobs may be claimed beyond the free slots."""
        mean, runs = self._all
        if runs < _KNOWN_AFTER:
            return 0
        return min(MOST_AHEAD, int(concurrency * HORIZON / max(mean, 1e-6)))

    def chunk_size(self, job_type: str) -> int:
        """How many jobs of a plain function one thread may take: several only where waking it costs more than they."""
        mean, runs = self._by_type.get(job_type, _UNKNOWN)
        if runs < _KNOWN_AFTER or mean >= _QUICK:
            return 1
        return max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / max(mean, 1e-6))))


def _moved(known: tuple[float, int], total: float, count: int) -> tuple[float, int]:
    """The running mean after `count` more runs that took `total` seconds together."""
    mean, runs = known
    runs += count
    # The first runs count fully: a mean that starts at zero would take every slow job for a quick one.
    return mean + (total / count - mean) * max(1.0 - (1.0 - _WEIGHT) ** count, count / runs), runs
