"""While the console is open, a supervisor that it started and that died gets a successor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from pgq_core.errors import PgqError
from pgq_tui.screens.leaving import LocalWorkers
from pgq_tui.supervisor.fate import Fate

LOOK_SECONDS = 1.0
PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds until the next try; twice as many after each that failed or brought up one that died soon."""
LONG_LIFE = 120.0


async def successors(
    workers: LocalWorkers,
    bring_up: Callable[[], Awaitable[LocalWorkers | None]],
    *,
    on_death: Callable[[str], None],
    on_failure: Callable[[Exception], None],
) -> AsyncIterator[LocalWorkers]:
    """One after the other, each when the one before has died; ends when one leaves in order or another takes over."""
    pause = PAUSE
    while True:
        born = time.monotonic()
        if await _fate_at_last(workers) is Fate.LEFT:
            return
        on_death(workers.supervisor_id)
        if time.monotonic() - born > LONG_LIFE:
            pause = PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            try:
                successor = await bring_up()
                break
            except (PgqError, OSError) as error:
                on_failure(error)
        if successor is None:
            return
        workers = successor
        yield workers


async def _fate_at_last(workers: LocalWorkers) -> Fate:
    """A database that is away cannot tell; it is asked again."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            fate = await workers.fate()
        except PgqError:
            continue
        if fate is not Fate.LIVES:
            return fate
