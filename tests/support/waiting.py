"""Waiting for what must become true, within a bounded time and without bare sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 15.0
INTERVAL = 0.01


def eventually(condition: Callable[[], T], timeout: float = TIMEOUT, interval: float = INTERVAL) -> T:
    """Call `condition` until it answers something truthy, and return that; fail with its last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(condition, timeout, answer))
        time.sleep(interval)
    return answer


async def eventually_async(
    condition: Callable[[], Awaitable[T] | T], timeout: float = TIMEOUT, interval: float = INTERVAL
) -> T:
    """The same for coroutine functions (and plain ones) while the event loop goes on."""
    deadline = time.monotonic() + timeout
    while True:
        called = condition()
        answer = await called if isinstance(called, Awaitable) else called
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(condition, timeout, answer))
        await asyncio.sleep(interval)


def _complaint(condition: Callable[[], object], timeout: float, answer: object) -> str:
    return f"{getattr(condition, '__qualname__', condition)} was not true within {timeout:g} s; last answer: {answer!r}"
