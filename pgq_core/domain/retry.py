"""When a failed attempt may run again: exponential backoff with full jitter.

Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (Marc Brooker):
sleep = uniform(0, min(cap, base * 2 ** attempt)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from random import Random

_MAX_EXPONENT = 64  # 2 ** 64 seconds is beyond any cap; larger exponents would only overflow


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Full jitter between zero and an exponentially growing, capped ceiling."""

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if self.base <= timedelta(0) or self.cap <= timedelta(0):
            raise ValueError(f"base and cap must be positive, not {self.base} and {self.cap}")

    def ceiling(self, attempt: int) -> timedelta:
        """The longest possible delay after attempt `attempt` (from 1) has failed.

        >>> RetryPolicy().ceiling(1), RetryPolicy().ceiling(1000)
        (datetime.timedelta(seconds=2), datetime.timedelta(seconds=3600))
        """
        cap = self.cap.total_seconds()
        grown = math.ldexp(self.base.total_seconds(), min(max(attempt, 0), _MAX_EXPONENT))
        return timedelta(seconds=min(cap, grown))

    def delay(self, attempt: int, random: Random) -> timedelta:
        """A delay drawn evenly from zero up to `ceiling(attempt)`."""
        return timedelta(seconds=self.delay_seconds(attempt, random))

    def delay_seconds(self, attempt: int, random: Random) -> float:
        return random.uniform(0.0, self.ceiling(attempt).total_seconds())
