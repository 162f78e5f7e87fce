"""Looking again and again: rests, hurries, and never gives up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from pgq_core.errors import DatabaseUnavailable
from pgq_tui.screens.backoff import LONGEST, retry_delay
from pgq_tui.screens.link import LinkMonitor
from pgq_tui.screens.poller import Poller
from pgq_tui.view_model.chrome import Link
from tests.support.waiting import eventually_async


class Watch:
    """A poller with what it saw."""

    def __init__(self, interval: float = 0.01) -> None:
        self.looks = 0
        self.fault: Exception | None = None
        self.successes: list[float] = []
        self.failures: list[tuple[Exception, bool, float]] = []
        self.poller = Poller(
            self.look,
            interval=lambda: interval,
            on_success=self.successes.append,
            on_failure=lambda error, is_outage, delay: self.failures.append((error, is_outage, delay)),
        )

    async def look(self) -> None:
        self.looks += 1
        if self.fault is not None:
            raise self.fault


@contextlib.asynccontextmanager
async def running(watch: Watch) -> AsyncIterator[Watch]:
    task = asyncio.create_task(watch.poller.run())
    try:
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_nobody_watching_means_no_look() -> None:
    async with running(Watch()) as watch:
        await asyncio.sleep(0.05)
        assert watch.looks == 0
        watch.poller.watch()
        await eventually_async(lambda: watch.looks > 2)
        watch.poller.rest()
        await asyncio.sleep(0.05)
        seen = watch.looks
        await asyncio.sleep(0.1)

        assert watch.looks <= seen + 1


async def test_a_kick_does_not_wait_for_the_interval() -> None:
    async with running(Watch(interval=60)) as watch:
        watch.poller.watch()
        await eventually_async(lambda: watch.looks == 1)
        watch.poller.kick()

        await eventually_async(lambda: watch.looks == 2)


async def test_after_an_act_it_looks_often_for_a_while() -> None:
    async with running(Watch(interval=60)) as watch:
        watch.poller.watch()
        await eventually_async(lambda: watch.looks == 1)
        watch.poller.hurry()

        await eventually_async(lambda: watch.looks >= 4)


@pytest.mark.parametrize(
    ("fault", "is_outage"),
    [
        (DatabaseUnavailable("connection refused"), True),
        (DatabaseUnavailable("canceling statement due to statement timeout", sqlstate="57014"), False),
        (OSError("no route"), True),
        (ZeroDivisionError("ours"), False),
    ],
)
async def test_a_failed_look_is_told_and_followed_by_another(fault: Exception, is_outage: bool) -> None:
    async with running(Watch()) as watch:
        watch.fault = fault
        watch.poller.watch()
        await eventually_async(lambda: len(watch.failures) >= 2)
        watch.fault = None

        await eventually_async(lambda: bool(watch.successes))
        assert watch.failures[0][:2] == (fault, is_outage)


def test_waiting_times_grow_to_ten_seconds_and_no_further() -> None:
    delays = [retry_delay(failures) for failures in range(1, 200)]

    assert all(0 < delay <= LONGEST for delay in delays)
    assert max(delays) > LONGEST * 0.7
    assert len(set(delays[50:])) > 1


def test_a_picture_is_live_stale_or_lost_but_never_more_than_it_is() -> None:
    link = LinkMonitor()
    assert link.state(0.0, 1.0) is Link.LOADING
    link.succeeded(10.0, 0.01)
    assert link.state(11.0, 1.0) is Link.LIVE
    assert link.state(11.0, 1.0, is_frozen=True) is Link.FROZEN
    assert link.state(14.0, 1.0) is Link.STALE
    link.failed(15.0, OSError("x"), 1.0, is_outage=True)
    assert link.state(15.0, 1.0) is Link.LOST
    assert link.age(15.0) == 5.0
    assert not link.is_healthy
    link.succeeded(16.0, 0.01)
    assert link.is_healthy
    assert link.banner(16.0) == ""
