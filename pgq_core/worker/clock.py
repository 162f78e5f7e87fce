"""Two clocks: the database's, which decides about rows, and the machine's, which also counts while it sleeps."""

from __future__ import annotations

import time

# Linux stops its monotonic clock while the machine is suspended; a lease in the database goes on.
_MACHINE_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def machine_ns() -> int:
    """Nanoseconds of a clock that all processes of this machine share and that no suspension stops."""
    return time.clock_gettime_ns(_MACHINE_CLOCK)


class DatabaseClock:
    """The database's time computed from our monotonic clock: set by each claim, never by this machine's wall clock."""

    def __init__(self) -> None:
        self.offset = time.time() - time.monotonic()
        """Seconds from our monotonic clock to the database's time since 1970."""
        self.is_set = False
        """Whether the database has said the time; before, it is a guess by this machine's clock."""

    def set(self, epoch: float) -> None:
        """`epoch`: the database's time (seconds) in an answer that has just arrived."""
        self.offset = epoch - time.monotonic()
        self.is_set = True

    def epoch(self, monotonic: float) -> float:
        """The database's time at a moment of our monotonic clock."""
        return monotonic + self.offset
