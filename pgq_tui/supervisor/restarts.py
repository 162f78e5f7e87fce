"""How long a seat stays empty after its worker died: exponential, jittered, forgotten after a healthy while."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """All times in seconds. `failures` counts deaths in a row in one seat, from 1."""

    base: float = 0.5
    cap: float = 30.0
    """Longest pause for a worker that never became ready: the same start will most likely fail again."""
    cap_once_ready: float = 5.0
    """Longest pause when it had been ready: a job killed it, and killing jobs end as dead letters."""
    healthy_after: float = 10.0
    crash_loop_after: int = 3

    def ceiling(self, failures: int, *, was_ready: bool) -> float:
        """
        >>> policy = RestartPolicy()
        >>> [policy.ceiling(n, was_ready=False) for n in (1, 2, 3, 7, 10_000)]
        [0.5, 1.0, 2.0, 30.0, 30.0]
        >>> policy.ceiling(7, was_ready=True)
        5.0
        """
        grown = math.ldexp(self.base, min(failures - 1, 32))
        return min(grown, self.cap_once_ready if was_ready else self.cap)

    def delay(self, failures: int, *, was_ready: bool, random: Random) -> float:
        """Between half the ceiling and all of it: seats that died together do not start together, and none at once."""
        ceiling = self.ceiling(failures, was_ready=was_ready)
        return random.uniform(ceiling / 2, ceiling)
