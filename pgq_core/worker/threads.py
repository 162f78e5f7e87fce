"""Threads for plain functions: each runs one job at a time, or a handful of very short ones in a row."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from pgq_core.worker.attempt import Attempt, Verdict

RECLAIM_AFTER: Final = 0.02
"""Seconds after which jobs that wait behind another one in a thread are given to others."""


class Chunk:
    """Jobs given to one thread. Those that it has not begun can be taken back at any time."""

    __slots__ = ("attempt", "has_ended", "is_abandoned", "waiting")

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self.waiting = deque(attempts)
        self.attempt: Attempt | None = None
        """The one that runs now."""
        self.has_ended = False
        self.is_abandoned = False
        """Its slot was given to others: the job in it outlived its time limit."""

    def stop(self, attempt: Attempt, verdict: Verdict) -> None:
        """Nothing stops a thread; the function may look at its context."""
        attempt.stop(verdict)

    def take_back(self) -> list[Attempt]:
        taken: list[Attempt] = []
        with contextlib.suppress(IndexError):  # the thread takes from the other end: each pop is one step
            while True:
                taken.append(self.waiting.pop())
        taken.reverse()
        return taken


class JobThreads:
    """Runs chunks in threads that are started when they are needed. `run` is called per attempt, in the thread."""

    def __init__(
        self,
        run: Callable[[Attempt], None],
        on_done: Callable[[list[Attempt], list[Chunk]], None],
        on_broken: Callable[[str], None],
    ) -> None:
        """`run` raises nothing; `on_broken` is told, on the loop, when a thread was ended by something all the same."""
        self._run = run
        self._on_done = on_done
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
        self._outbox: deque[Attempt | Chunk] = deque()
        self._is_told = False
        self._threads = 0
        self.chunks: set[Chunk] = set()
        """Those that threads work on, abandoned ones included."""

    def give(self, chunk: Chunk, on_slow: Callable[[list[Attempt]], None]) -> None:
        """`on_slow` gets the attempts that wait in vain behind the chunk's first ones."""
        self.chunks.add(chunk)
        if self._threads < len(self.chunks):
            self._threads += 1
            threading.Thread(target=self._work, name=f"pgq-job-{self._threads}", daemon=True).start()
        if len(chunk.waiting) > 1:
            self._loop.call_later(RECLAIM_AFTER, self._reclaim, chunk, on_slow)
        self._inbox.put(chunk)

    def is_busy(self) -> bool:
        return bool(self.chunks)

    def _reclaim(self, chunk: Chunk, on_slow: Callable[[list[Attempt]], None]) -> None:
        if not chunk.has_ended and (attempts := chunk.take_back()):
            on_slow(attempts)

    def _work(self) -> None:
        try:
            while (chunk := self._inbox.get()) is not None:
                self._work_on(chunk)
        except BaseException as error:  # noqa: BLE001 - an exception can be thrown into a thread from outside
            words = f"a thread of plain functions broke down: {type(error).__name__}"
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._on_broken, words)

    def _work_on(self, chunk: Chunk) -> None:
        while not chunk.is_abandoned:
            try:
                attempt = chunk.attempt = chunk.waiting.popleft()
            except IndexError:
                break
            self._run(attempt)
            self._hand_out(attempt)
        self._hand_out(chunk)

    def _hand_out(self, done: Attempt | Chunk) -> None:
        self._outbox.append(done)
        # Told once for all that waits: waking the loop costs more than a short job.
        if not self._is_told:
            self._is_told = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._is_told = False
        attempts: list[Attempt] = []
        chunks: list[Chunk] = []
        while self._outbox:
            done = self._outbox.popleft()
            if isinstance(done, Chunk):
                done.has_ended = True
                self.chunks.discard(done)
                chunks.append(done)
            else:
                attempts.append(done)
        self._on_done(attempts, chunks)
