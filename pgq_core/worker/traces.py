"""A span around every run, where the application has configured OpenTelemetry."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

from pgq_core.domain.job import Job
from pgq_core.handlers import NextCall, Registry, Resources
from pgq_core.traces import find_tracing
from pgq_core.worker.clock import DatabaseClock

LAST_FLUSH: Final = 2.0
"""Seconds that a worker which leaves waits for its last spans to be sent."""


def traced_registry(registry: Registry, clock: DatabaseClock, worker_id: str, *, flushes: bool = True) -> Registry:
    """The same handlers inside a span, outside all other middleware. Asked once: a run costs nothing without traces.

    `flushes`: at the end of `registry`, what exporters still keep back is sent. A worker ends at once, without the
    hooks of the interpreter by which the SDK would do it.
    """
    tracing = find_tracing()
    if tracing is None:
        return registry

    async def send_the_last_spans(_: Resources) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(tracing.flush, LAST_FLUSH), LAST_FLUSH)

    if flushes:
        registry.after_shutdown(send_the_last_spans)
    traced = Registry()

    @traced.middleware
    async def run_in_span(job: Job, call_next: NextCall) -> object:
        now = clock.epoch(time.monotonic())
        with tracing.running(job, now=now, worker_id=worker_id) as running:
            value = await call_next()
            running.note_value(value)
        return value

    traced.include(registry)
    return traced
