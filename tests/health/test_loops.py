"""What a loop says of itself, before any process is involved."""

from __future__ import annotations

import asyncio
import doctest
import json
import time

import pytest

from pgq_core.domain import health
from pgq_core.domain.health import LoopHealth, decode_loops, encode_loops
from pgq_core.errors import DatabaseUnavailable
from pgq_core.metrics.figures import LoopFigures
from pgq_core.service import PeriodicService, loops_of
from pgq_core.worker.marks import Marks, Turn
from tests.support.waiting import eventually_async


class Turner(PeriodicService):
    name = "turner"

    def __init__(self, *, limit: float = 30.0) -> None:
        super().__init__(interval=0.001, limit=limit)
        self.turns = 0
        self.trouble: Exception | None = None
        self.held = asyncio.Event()
        self.held.set()

    async def run_once(self) -> None:
        await self.held.wait()
        self.turns += 1
        if self.trouble is not None:
            raise self.trouble


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(health).failed == 0


def test_what_a_beat_carries_ages_with_the_beat() -> None:
    text = encode_loops([LoopHealth("claim", 1.0, 3.0), LoopHealth("reaper", 2.0, 60.0, "no\0answer")])
    assert text is not None

    claim, reaper = decode_loops(json.loads(text), since=2.5)

    assert (claim.age, claim.is_stalled) == (3.5, True)
    assert (reaper.age, reaper.is_stalled) == (4.5, False)
    assert reaper.error is not None
    assert "\0" not in reaper.error


@pytest.mark.parametrize(
    "garbage", [None, 7, "x", [], {"a": None}, {"a": {"age": "soon", "limit": 1}}, {"a": {"age": 1}}]
)
def test_garbage_in_a_beat_breaks_no_reader(garbage: object) -> None:
    assert decode_loops(garbage, since=1.0) == ()


async def test_a_loop_that_fails_grows_old_and_says_why() -> None:
    service, stop = Turner(), asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    await eventually_async(lambda: service.turns > 2)
    service.trouble = DatabaseUnavailable("gone fishing")
    await eventually_async(lambda: service.health().failures)

    (first,) = loops_of([service, object()])
    await asyncio.sleep(0.05)
    (second,) = service.loops()

    assert second.age > first.age
    assert second.error is not None
    assert "gone fishing" in second.error
    assert service.stuck_for() is None
    stop.set()
    await running


async def test_a_loop_that_hangs_is_stalled_and_stuck() -> None:
    service, stop = Turner(limit=0.05), asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    await eventually_async(lambda: service.turns)
    service.held.clear()

    await eventually_async(lambda: service.stuck_for() is not None)

    (loop,) = service.loops()
    assert loop.is_stalled
    service.held.set()
    await eventually_async(lambda: service.stuck_for() is None)
    stop.set()
    await running


async def test_a_loop_that_never_made_a_good_turn_is_as_old_as_itself() -> None:
    service, stop = Turner(limit=0.05), asyncio.Event()
    service.held.clear()
    assert service.loops() == ()
    running = asyncio.create_task(service.run(stop))

    await eventually_async(lambda: service.loops() and service.loops()[0].is_stalled)

    service.held.set()
    stop.set()
    await running
    assert service.loops() == ()


def test_a_loop_that_rests_owes_no_turn() -> None:
    marks = Marks.create(1)
    try:
        assert marks.turn_age(Turn.FINISH) == 0.0
        marks.turned(Turn.FINISH)
        time.sleep(0.002)
        assert marks.turn_age(Turn.FINISH) >= 0.002
        marks.rests(Turn.FINISH)
        assert marks.turn_age(Turn.FINISH) == 0.0
        assert marks.last_beat_ns == marks.finished == marks.failed == marks.late_writes == 0
    finally:
        marks.close()


def test_the_gauges_show_the_worst_process_of_each_loop() -> None:
    figures = LoopFigures.by_name([LoopHealth("claim", 1, 30), LoopHealth("claim", 40, 30), LoopHealth("watch", 2, 30)])

    assert figures == {"claim": LoopFigures(40, 1), "watch": LoopFigures(2, 0)}
