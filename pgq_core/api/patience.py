"""Work that is waited for no longer than a bounded time, and that no client can break off by hanging up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pgq_core.errors import DatabaseUnavailable

T = TypeVar("T")


class Patience:
    """Runs the work of requests as tasks of its own."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T], *, limit: float | None = None) -> T:
        """The result of `work`. After `limit` seconds it is broken off, and DatabaseUnavailable raised at once.

        When the caller is cancelled, the work goes on to its own end: a job is either inserted or not.
        """
        longest = self.limit if limit is None else limit
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        done, _ = await asyncio.wait({task}, timeout=longest)
        if not done:
            # Breaking off may itself wait for a server that is silent: nobody waits for that.
            task.cancel()
            raise DatabaseUnavailable(f"no answer within {longest:g} s")
        return task.result()

    async def finish(self, timeout: float) -> None:
        """Lets what runs end, for a bounded time."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=timeout)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1.0)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains when the caller has left
