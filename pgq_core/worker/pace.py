"""How long jobs take, by running means: how many may be claimed ahead, and which plain functions may share a thread."""

from __future__ import annotations

from typing import Final

HORIZON: Final = 0.1
"""Seconds of work that may wait in a worker's hands: more would starve other workers and be at risk in a crash."""
LARGEST_CLAIM: Final = 500
_WEIGHT: Final = 0.05
_QUICK: Final = 0.001
_KNOWN_AFTER: Final = 10
_CHUNK_SECONDS: Final = 0.005
_LARGEST_CHUNK: Final = 50


class Pace:
    """Fed with the duration of every run."""

    def __init__(self) -> None:
        self._mean = 0.0
        self._runs = 0
        self._by_type: dict[str, tuple[float, int]] = {}

    def add(self, job_type: str, seconds: float) -> None:
        self._runs += 1
        # The first runs count fully: a mean that starts at zero would take every slow job for a quick one.
        self._mean += (seconds - self._mean) * max(_WEIGHT, 1.0 / self._runs)
        mean, runs = self._by_type.get(job_type, (0.0, 0))
        runs += 1
        self._by_type[job_type] = (mean + (seconds - mean) * max(_WEIGHT, 1.0 / runs), runs)

    def ahead(self, concurrency: int) -> int:
        """How many jobs may be claimed beyond the free slots."""
        if self._runs < _KNOWN_AFTER:
            return 0
        return min(LARGEST_CLAIM, int(concurrency * HORIZON / max(self._mean, 1e-6)))

    def chunk_size(self, job_type: str) -> int:
        """How many jobs of a plain function one thread may take: several only where waking it costs more than they."""
        mean, runs = self._by_type.get(job_type, (0.0, 0))
        if runs < _KNOWN_AFTER or mean >= _QUICK:
            return 1
        return max(1, min(_LARGEST_CHUNK, int(_CHUNK_SECONDS / max(mean, 1e-6))))
