"""Traces through the OpenTelemetry API where a process has configured it; where not, nothing is imported or spent."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pgq_core.domain.job import Job

if TYPE_CHECKING:
    from pgq_core.traces.tracing import Tracing

__all__ = ["find_tracing", "current_context", "run_span"]


def find_tracing() -> Tracing | None:
    """This process's tracing; None as long as it has no tracer provider. Without OpenTelemetry it is one look-up."""
    if "opentelemetry.trace" not in sys.modules:  # nobody who configures a provider gets around importing it
        return None
    from pgq_core.traces.tracing import configured_tracing

    return configured_tracing()


def current_context() -> dict[str, str] | None:
    """The W3C headers that lead to the span that is current here; None without traces, and outside of any span."""
    tracing = find_tracing()
    return None if tracing is None else tracing.current_context()


@contextlib.contextmanager
def run_span(job: Job) -> Iterator[None]:
    """For loops of one's own: the block is the run of a claimed job. Workers do this by themselves."""
    tracing = find_tracing()
    if tracing is None:
        yield
        return
    with tracing.running(job):
        yield
