"""For the tests of applications: queues that are worked off inside the test, and fixtures for pytest (plugin `pgq`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # at run time each is imported when it is first asked for: pytest loads the plugin in every project
    from pgq_core.testing.async_queue import AsyncQueueUnderTest
    from pgq_core.testing.draining import DrainedRun, DrainedTooLong
    from pgq_core.testing.sync_queue import QueueUnderTest

__all__ = ["QueueUnderTest", "AsyncQueueUnderTest", "DrainedRun", "DrainedTooLong"]

_HOMES = {
    "QueueUnderTest": "sync_queue",
    "AsyncQueueUnderTest": "async_queue",
    "DrainedRun": "draining",
    "DrainedTooLong": "draining",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
