"""Waiting for what must become true, within a bounded time and without bare sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 60.0
"""Nobody gives up sooner, whatever a test says: what comes true takes no longer for it, and a busy machine needs it."""
INTERVAL = 0.01
LONGEST_INTERVAL = 0.05
"""What is waited for long is looked for less often: looking costs the processor that the others need to get there."""


def eventually(condition: Callable[[], T], timeout: float = TIMEOUT, interval: float = INTERVAL) -> T:
    """Call `condition` until it answers something truthy, and return that; fail with its last answer."""
    timeout = max(timeout, TIMEOUT)
    began_at = time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - began_at
        if waited > timeout:
            raise AssertionError(_complaint(condition, timeout, answer))
        time.sleep(_pause(waited, interval))
    return answer


async def eventually_async(
    condition: Callable[[], Awaitable[T] | T], timeout: float = TIMEOUT, interval: float = INTERVAL
) -> T:
    """The same for coroutine functions (and plain ones) while the event loop goes on."""
    timeout = max(timeout, TIMEOUT)
    began_at = time.monotonic()
    while True:
        called = condition()
        answer = await called if isinstance(called, Awaitable) else called
        if answer:
            return answer
        waited = time.monotonic() - began_at
        if waited > timeout:
            raise AssertionError(_complaint(condition, timeout, answer))
        await asyncio.sleep(_pause(waited, interval))


def _pause(waited: float, interval: float) -> float:
    return max(interval, min(waited / 10, LONGEST_INTERVAL))


def _complaint(condition: Callable[[], object], timeout: float, answer: object) -> str:
    return f"{getattr(condition, '__qualname__', condition)} was not true within {timeout:g} s; last answer: {answer!r}"
