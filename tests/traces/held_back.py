"""An application whose exporter keeps spans back for an hour, as it does for seconds in production."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from pgq_core import handler


class Exporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        sys.stdout.write(f"sent {' and '.join(span.name for span in spans)}\n")
        sys.stdout.flush()
        if "HANGS" in os.environ:
            time.sleep(3600)
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Exporter(), schedule_delay_millis=3_600_000))
trace.set_tracer_provider(provider)


@handler("traced")
async def traced(data: object) -> None: ...
