"""Memory shared by a runner and its keeper: which jobs have started, a few counters, the last good beat.

The keeper reads it after the runner's death, when nobody can be asked any more. Cells are aligned 64-bit integers,
each written by one side only and in one store.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from pgq_core.worker.clock import machine_ns

_HEADER: Final = 16
_CELL: Final = 8
_LAST_BEAT, _FINISHED, _FAILED, _LATE_WRITES = range(4)


TEND_EVERY: Final = 1.0
ANNOUNCE_EVERY: Final = 3600.0
"""Seconds. A type counts as unknown only when nobody has announced it for days."""


class Turn(IntEnum):
    """The cells in which the loops of a runner write down the time of their last good turn."""

    CLAIM = 4
    FINISH = 5
    TEND = 6
    WATCHDOG = 7
    ANNOUNCE = 8
    SWEEP = 9


UNWRITTEN_ROOM: Final = 2048
"""Jobs that have ended and whose outcome is not yet written, beside the running ones."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A job that was started. `has_ended`: its handler is through, only its outcome was not written yet."""

    job_id: int
    deadline_ns: int
    has_ended: bool


class Marks:
    """The shared cells. Of mark `i` cell 2i holds the job id (negative: ended, 0: free), cell 2i + 1 its deadline."""

    def __init__(self, descriptor: int, concurrency: int) -> None:
        self.descriptor = descriptor
        self.room = concurrency + UNWRITTEN_ROOM
        size = _CELL * (_HEADER + 2 * self.room)
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._memory = mmap.mmap(descriptor, size)
        cells = memoryview(self._memory).cast("q")
        self._header = cells[:_HEADER]
        self.cells = cells[_HEADER:]
        """For the hot path: the runner writes here directly, see the class's docstring."""

    @classmethod
    def create(cls, concurrency: int) -> Marks:
        if hasattr(os, "memfd_create"):
            return cls(os.memfd_create("pgq-marks"), concurrency)
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()), concurrency)

    def close(self) -> None:
        self.cells.release()
        self._header.release()
        self._memory.close()  # it has a descriptor of its own
        os.close(self.descriptor)

    def started(self) -> list[Mark]:
        cells = self.cells.tolist()
        return [
            Mark(abs(job_id), deadline, job_id < 0)
            for job_id, deadline in zip(cells[::2], cells[1::2], strict=True)
            if job_id
        ]

    def turned(self, loop: Turn) -> None:
        """That loop has just made a good turn."""
        self._header[loop] = time.monotonic_ns()

    def turned_at(self, loop: Turn, moment: float) -> None:
        """The same, at a moment of the machine's steady clock."""
        self._header[loop] = int(moment * 1e9)

    def rests(self, loop: Turn) -> None:
        """That loop has nothing to do, and will be woken: no turn is owed."""
        self._header[loop] = 0

    def turn_age(self, loop: Turn) -> float:
        """Seconds since its last good turn; 0 while it rests or has not begun."""
        turned_at = self._header[loop]
        return max(time.monotonic_ns() - turned_at, 0) / 1e9 if turned_at else 0.0

    @property
    def last_beat_ns(self) -> int:
        """The machine's clock when the last beat that the database accepted was sent; 0 before the first."""
        return self._header[_LAST_BEAT]

    @last_beat_ns.setter
    def last_beat_ns(self, value: int) -> None:
        self._header[_LAST_BEAT] = value

    def silence(self) -> float:
        """Seconds since the last beat that the database accepted was sent; 0 before the first."""
        return (machine_ns() - self.last_beat_ns) / 1e9 if self.last_beat_ns else 0.0

    @property
    def running(self) -> int:
        """Jobs that run right now."""
        return sum(1 for job_id in self.cells.tolist()[::2] if job_id > 0)

    @property
    def finished(self) -> int:
        return self._header[_FINISHED]

    @finished.setter
    def finished(self, value: int) -> None:
        self._header[_FINISHED] = value

    @property
    def failed(self) -> int:
        return self._header[_FAILED]

    @failed.setter
    def failed(self, value: int) -> None:
        self._header[_FAILED] = value

    @property
    def late_writes(self) -> int:
        return self._header[_LATE_WRITES]

    @late_writes.setter
    def late_writes(self, value: int) -> None:
        self._header[_LATE_WRITES] = value
