"""An event loop for the coroutine handlers of a plain test."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class PrivateLoop:
    """One loop for all runs, so that what a handler keeps in its resources stays usable."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """In this thread; where a loop runs already (a plain queue in an asynchronous program), in another one."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        if not _is_inside_loop():
            return self._loop.run_until_complete(coroutine)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="pgq-testing")
        context = contextvars.copy_context()
        return self._thread.submit(context.run, self._loop.run_until_complete, coroutine).result()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        if self._loop is not None:
            self._loop.close()


def _is_inside_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
