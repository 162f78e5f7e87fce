"""Notices that others may already have our jobs: the keeper's beats did not get through for too long, or it is gone.

A thread, since a job may hold up the loop. It compares the machine's clock with the last good beat in the shared
memory, so that a healthy worker whose job holds the GIL is never taken for a suspended one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from pgq_core.worker.marks import Marks, Turn
from pgq_core.worker.protocol import RunnerExitCode

SAFE_SHARE: Final = 0.85
"""Of the stale limit; at its end the reaper may act, by then nothing of ours may run any more."""


def safe_silence(stale_limit: float) -> float:
    """Seconds without a beat after which a worker may neither go on nor begin anything."""
    return stale_limit * SAFE_SHARE


class Watchdog:
    """Calls `on_fenced` (in its thread) once; when the loop does not follow in time, it ends the process itself."""

    def __init__(self, marks: Marks, *, stale_limit: float, on_fenced: Callable[[float], None]) -> None:
        self._marks = marks
        self._limit = safe_silence(stale_limit)
        self._last_moment = stale_limit * (1.0 + SAFE_SHARE) / 2
        self._tick = max(min(stale_limit / 20, 1.0), 0.01)
        self._on_fenced = on_fenced
        self._is_over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="pgq-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(self._tick):
            self._marks.turned(Turn.WATCHDOG)
            if self._marks.silence() > self._limit:
                self._on_fenced(self._marks.silence())
                self._end_hard()
                return

    def _end_hard(self) -> None:
        """The loop has a moment to cancel what runs; a job that holds it up ends with the process."""
        deadline = time.monotonic() + max(self._last_moment - self._marks.silence(), 2 * self._tick)
        while not self._is_over.wait(self._tick):
            if time.monotonic() > deadline:
                os._exit(RunnerExitCode.FENCED)
