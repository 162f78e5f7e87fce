"""A span around every run, where the application has configured OpenTelemetry."""

from __future__ import annotations

import time

from pgq_core.domain.job import Job
from pgq_core.handlers import NextCall, Registry
from pgq_core.traces import find_tracing
from pgq_core.worker.clock import DatabaseClock


def traced_registry(registry: Registry, clock: DatabaseClock, worker_id: str) -> Registry:
    """The same handlers inside a span, outside all other middleware. Asked once: a run costs nothing without traces."""
    tracing = find_tracing()
    if tracing is None:
        return registry
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
