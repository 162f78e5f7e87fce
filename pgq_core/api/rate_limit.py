"""How often one client may ask: a bucket of requests per client that fills up again steadily."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

BURST_SECONDS: Final = 2.0
_MOST_CLIENTS: Final = 10_000


class RateLimit:
    """`rate` requests per second and client; 0: no limit. Clients that are quiet for long are forgotten."""

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._capacity = max(1.0, rate * BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, client: str) -> int:
        """0: the request is counted and may pass; else whole seconds after which it is worth another try.

        >>> limit = RateLimit(1, clock=lambda: 0.0)
        >>> [limit.seconds_to_wait("a") for _ in range(3)], limit.seconds_to_wait("b")
        ([0, 0, 1], 0)
        """
        if not self._rate:
            return 0
        now = self._clock()
        left, at = self._buckets.pop(client, (self._capacity, now))
        left = min(self._capacity, left + (now - at) * self._rate)
        is_allowed = left >= 1
        self._buckets[client] = (left - 1 if is_allowed else left, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0 if is_allowed else max(1, math.ceil((1 - left) / self._rate))
