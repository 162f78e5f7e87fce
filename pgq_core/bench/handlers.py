"""What the workers of a benchmark run: handlers that do nothing, or wait. Each says when it started and ended."""

from __future__ import annotations

import asyncio

from pgq_core.bench.recorder import Recorder, recorder_from_environment
from pgq_core.domain.job import JSON
from pgq_core.handlers import Registry
from pgq_core.handlers.registry import Resources

registry = Registry()

NOOP = "bench.noop"
THREAD = "bench.thread"
SLEEP = "bench.sleep"

_recorders: list[Recorder] = []


@registry.on_startup
def open_recorder(_: Resources) -> None:
    _recorders[:] = [recorder_from_environment()]


@registry.handler(NOOP)
async def noop(data: JSON) -> None:
    recorder = _recorders[0]
    recorder.start(data["n"])
    recorder.end(data["n"])


@registry.handler(THREAD)
def noop_on_thread(data: JSON) -> None:
    recorder = _recorders[0]
    recorder.start_on_thread(data["n"])
    recorder.end(data["n"])


@registry.handler(SLEEP)
async def sleep(data: JSON) -> None:
    recorder = _recorders[0]
    recorder.start(data["n"])
    await asyncio.sleep(data["ms"] / 1000)
    recorder.end(data["n"])
