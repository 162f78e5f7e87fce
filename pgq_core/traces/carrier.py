"""How a trace context is kept with a job: the W3C headers as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pgq_core.domain.job import JSON

# The W3C form whatever propagator the process has chosen: the other side may be a program in another language.
_W3C: Final = TraceContextTextMapPropagator()


def headers_of(span: Span) -> dict[str, str] | None:
    """What leads to `span`; None when it has no identity."""
    headers: dict[str, str] = {}
    _W3C.inject(headers, set_span_in_context(span, Context()))
    return headers or None


def written(span: Span) -> str | None:
    """The same as JSON text."""
    headers = headers_of(span)
    return None if headers is None else json.dumps(headers)


def read(kept: JSON) -> SpanContext | None:
    """The span that a job's `trace_context` leads to; None for anything else that somebody may have stored there."""
    if not isinstance(kept, Mapping):
        return None
    headers = {str(name).lower(): value for name, value in kept.items() if isinstance(value, str)}
    context = get_current_span(_W3C.extract(headers, Context())).get_span_context()
    return context if context.is_valid else None


def read_text(kept: str | None) -> SpanContext | None:
    return None if kept is None else read(json.loads(kept))
