"""The inner loops of a runner, as its keeper sees them in the shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgq_core.domain.health import LoopHealth, turn_limit
from pgq_core.plain_settings import AnySettings
from pgq_core.worker.handle import RunnerHandle, RunnerState
from pgq_core.worker.marks import ANNOUNCE_EVERY, TEND_EVERY, Marks, Turn

_LONGEST_SWEEP: Final = 1200.0
"""Seconds. A round that takes longer goes over more dead entries than any queue should have."""


def runner_loops(handle: RunnerHandle, settings: AnySettings) -> Iterator[LoopHealth]:
    """Nothing before it is ready. One that drains claims and announces no more."""
    if handle.state is RunnerState.RUNNING:
        yield _loop(handle.marks, Turn.CLAIM, settings, every=settings.poll)
        yield _loop(handle.marks, Turn.SWEEP, settings, every=_LONGEST_SWEEP)
        yield _loop(handle.marks, Turn.ANNOUNCE, settings, every=ANNOUNCE_EVERY)
    if handle.state in {RunnerState.RUNNING, RunnerState.DRAINING} and handle.job_types:
        yield _loop(handle.marks, Turn.FINISH, settings, every=settings.poll)
        yield _loop(handle.marks, Turn.TEND, settings, every=TEND_EVERY)
        yield _loop(handle.marks, Turn.WATCHDOG, settings, every=TEND_EVERY)


def _loop(marks: Marks, turn: Turn, settings: AnySettings, *, every: float) -> LoopHealth:
    return LoopHealth(turn.name.lower(), marks.turn_age(turn), turn_limit(every, least=settings.stale_limit))
