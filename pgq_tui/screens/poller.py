"""Looking again and again: one coroutine per screen that rests while nobody watches and never gives up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import psycopg

from pgq_core.errors import DatabaseUnavailable, PgqError
from pgq_tui.screens.backoff import retry_delay

logger = logging.getLogger(__name__)

HURRY_SECONDS = 4.0
HURRY_INTERVAL = 0.25
_STATEMENT_TIMEOUT = "57014"


class Poller:
    """Calls `look` every `interval` seconds. After a failure it waits longer each time, but for ever.

    `on_failure` is told the error, whether the database is away, and in how many seconds the next look comes.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[None]],
        *,
        interval: Callable[[], float],
        on_success: Callable[[float], None],
        on_failure: Callable[[Exception, bool, float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._look = look
        self._interval = interval
        self._on_success = on_success
        self._on_failure = on_failure
        self._watched = asyncio.Event()
        self._kicked = asyncio.Event()
        self._failures = 0
        self._hurried_until = 0.0

    def watch(self) -> None:
        """Somebody looks: start now."""
        self._watched.set()
        self._kicked.set()

    def rest(self) -> None:
        """Nobody looks: stop after the look that is under way."""
        self._watched.clear()

    def kick(self) -> None:
        """Look now instead of later."""
        self._kicked.set()

    def hurry(self) -> None:
        """Look now and often for a few seconds: the operator has just changed something."""
        self._hurried_until = self._clock() + HURRY_SECONDS
        self._kicked.set()

    async def run(self) -> None:
        while True:
            await self._watched.wait()
            self._kicked.clear()
            await self._pause(await self._look_once())

    async def _look_once(self) -> float:
        """One look; answers how long to wait for the next."""
        started = self._clock()
        try:
            await self._look()
        except (PgqError, psycopg.Error, OSError, TimeoutError) as error:
            return self._failed(error, is_outage=_is_outage(error))
        except Exception as error:  # a fault of ours must be seen on the screen, not end it
            logger.exception("a look failed", extra={"event": "look_failed"})
            return self._failed(error, is_outage=False)
        self._failures = 0
        self._on_success(self._clock() - started)
        is_hurried = self._clock() < self._hurried_until
        return min(HURRY_INTERVAL, self._interval()) if is_hurried else self._interval()

    def _failed(self, error: Exception, *, is_outage: bool) -> float:
        self._failures += 1
        delay = retry_delay(self._failures)
        self._on_failure(error, is_outage, delay)
        return delay

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._kicked.wait()
        except TimeoutError:
            return


def _is_outage(error: Exception) -> bool:
    """Whether the database is away. A statement that took too long says only that this answer did not come."""
    if isinstance(error, DatabaseUnavailable):
        return error.sqlstate != _STATEMENT_TIMEOUT
    return isinstance(error, OSError)
