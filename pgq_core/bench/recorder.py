"""A file that workers and benchmark map into memory: who started how many jobs, and when, at no cost to the database.

A slot of 64 bytes per worker: jobs started, first and last start (nanoseconds of the machine's monotonic clock). Behind
the slots, where asked for, start and end of each job number.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH_VARIABLE = "PGQ_BENCH_RECORDING"
SLOT_VARIABLE = "PGQ_BENCH_SLOT"

MOST_WORKERS = 256
_SLOT_BYTES = 64
_STAMPS_AT = MOST_WORKERS * _SLOT_BYTES
_SLOT = struct.Struct("<QQQ")
_STAMP = struct.Struct("<Q")
_STAMP_BYTES = 16


class Recorder:
    """The side of one worker."""

    def __init__(self, path: str, slot: int) -> None:
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._at = slot * _SLOT_BYTES
        self._first = 0
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._has_stamps = len(self._memory) > _STAMPS_AT
        self._write_slot = _SLOT.pack_into
        self._write_stamp = _STAMP.pack_into

    def start(self, number: int) -> None:
        """Job `number` starts now; on one thread only."""
        now = time.monotonic_ns()
        if not self._first:
            self._first = now
        self._write_slot(self._memory, self._at, next(self._numbers), self._first, now)
        if self._has_stamps:
            self._write_stamp(self._memory, _STAMPS_AT + _STAMP_BYTES * number, now)

    def start_on_thread(self, number: int) -> None:
        with self._lock:
            self.start(number)

    def end(self, number: int) -> None:
        if self._has_stamps:
            self._write_stamp(self._memory, _STAMPS_AT + _STAMP_BYTES * number + 8, time.monotonic_ns())


def recorder_from_environment() -> Recorder:
    return Recorder(os.environ[PATH_VARIABLE], int(os.environ[SLOT_VARIABLE]))


class Recording:
    """The benchmark's side."""

    def __init__(self, path: Path, memory: mmap.mmap, workers: int, stamps: int) -> None:
        self.path = path
        self._memory = memory
        self._workers = workers
        self._stamps = stamps

    def environment(self, slot: int) -> dict[str, str]:
        """What the worker of this slot has to find in its environment."""
        return {PATH_VARIABLE: str(self.path), SLOT_VARIABLE: str(slot)}

    def started(self) -> int:
        return sum(self.shares())

    def shares(self) -> list[int]:
        """Jobs started, by worker."""
        return [self._slot(worker)[0] for worker in range(self._workers)]

    def first_start(self) -> int | None:
        """Nanoseconds of the monotonic clock; None before any start."""
        return min((first for _, first, _ in map(self._slot, range(self._workers)) if first), default=None)

    def last_start(self) -> int | None:
        return max((last for _, _, last in map(self._slot, range(self._workers)) if last), default=None)

    def start_of(self, number: int) -> float | None:
        """When job `number` started, in seconds of the monotonic clock; None: not yet."""
        return self._stamp(number, 0)

    def end_of(self, number: int) -> float | None:
        return self._stamp(number, 8)

    def _stamp(self, number: int, offset: int) -> float | None:
        if not 0 <= number < self._stamps:
            raise IndexError(f"{number} is none of the {self._stamps} jobs recorded")
        nanoseconds = _STAMP.unpack_from(self._memory, _STAMPS_AT + _STAMP_BYTES * number + offset)[0]
        return nanoseconds * 1e-9 if nanoseconds else None

    def _slot(self, worker: int) -> tuple[int, int, int]:
        started, first, last = _SLOT.unpack_from(self._memory, worker * _SLOT_BYTES)
        return started, first, last


@contextmanager
def recording(workers: int, *, stamps: int = 0) -> Iterator[Recording]:
    """A fresh recording for so many workers, with room for the times of jobs 0 to `stamps` - 1."""
    if workers > MOST_WORKERS:
        raise ValueError(f"a recording has room for {MOST_WORKERS} workers, not for {workers}")
    descriptor, name = tempfile.mkstemp(prefix="pgq-bench-")
    path = Path(name)
    try:
        os.ftruncate(descriptor, _STAMPS_AT + _STAMP_BYTES * stamps)
        with mmap.mmap(descriptor, 0) as memory:
            yield Recording(path, memory, workers, stamps)
    finally:
        os.close(descriptor)
        path.unlink()
