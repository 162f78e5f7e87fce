"""The spans of a job: its enqueue, each wait and each run, by the semantic conventions for messaging."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from pgq_core.domain.enqueue import NewJob
from pgq_core.domain.job import Job, Outcome
from pgq_core.domain.outcome import Cancel, Discard, HandlerWish, Snooze
from pgq_core.domain.text import describe
from pgq_core.traces import carrier

SYSTEM: Final = "pgq"
_NOT_CONFIGURED = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)


def configured_tracing() -> Tracing | None:
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, _NOT_CONFIGURED) else _tracing_of(provider)


@functools.lru_cache(maxsize=1)  # a process has one provider; its tracer is the same for all queues and workers
def _tracing_of(provider: TracerProvider) -> Tracing:
    return Tracing(provider)


@dataclass(frozen=True, slots=True)
class Sending:
    """An enqueue under way: the jobs with the trace context that is stored with them."""

    jobs: list[NewJob]
    span: Span

    def answered(self, ids: Sequence[int], *, created: int) -> None:
        if len(ids) == 1:
            self.span.set_attribute("messaging.message.id", str(ids[0]))
        self.span.set_attribute("pgq.jobs.created", created)


class Tracing:
    """Starts and ends spans. What a tracer raises is not caught: the API promises that it raises nothing."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = trace.get_tracer("pgq_core", tracer_provider=provider)

    def flush(self, seconds: float) -> None:
        """Sends what an exporter still keeps back. The API knows no such call; the SDK's providers have it."""
        force_flush = getattr(self._provider, "force_flush", None)
        if force_flush is not None:
            force_flush(round(seconds * 1000))

    def current_context(self) -> dict[str, str] | None:
        return carrier.headers_of(trace.get_current_span())

    @contextlib.contextmanager
    def enqueueing(self, jobs: list[NewJob]) -> Iterator[Sending]:
        """The producer's span. Each job without a context of its own is given this span's; one span for a batch.

        It is not made the current span: a flow that is given up half-way could not take that back.
        """
        given = [context for job in jobs if (context := carrier.read_text(job.trace_context)) is not None]
        parent, links = _parent_of_sending(given, is_batch=len(jobs) > 1)
        queues = {job.queue for job in jobs}
        span = self._tracer.start_span(
            f"enqueue {jobs[0].queue}" if len(queues) == 1 else "enqueue",
            parent,
            SpanKind.PRODUCER,
            _facts_of_sending(jobs, queues),
            links,
        )
        try:
            yield Sending([_with_context(job, span, is_batch=len(jobs) > 1) for job in jobs], span)
        except Exception as error:
            _note_error(span, error)
            raise
        finally:
            span.end()

    @contextlib.contextmanager
    def running(self, job: Job, *, now: float | None = None, worker_id: str | None = None) -> Iterator[RunningSpan]:
        """The consumer's span, current while the block runs. With `now`, the database's time, one for the wait before.

        Both belong to the trace of the enqueue. The runs of a replay, which somebody asked for later, begin traces of
        their own that are linked to it.
        """
        parent, links = _origin_of(job)
        facts = _facts_of(job) if worker_id is None else {**_facts_of(job), "messaging.client.id": worker_id}
        started = time.time_ns()
        if now is not None:
            self._tell_wait(job, facts, parent, links, ended=started, now=now)
        span = self._tracer.start_span(
            f"run {job.queue}",
            parent,
            SpanKind.CONSUMER,
            {**facts, "messaging.operation.name": "run", "messaging.operation.type": "process"},
            links,
            started,
        )
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            running = RunningSpan(span)
            try:
                yield running
            except BaseException as error:
                running.note_error(error)
                raise

    def _tell_wait(
        self,
        job: Job,
        facts: dict[str, AttributeValue],
        parent: Context | None,
        links: Sequence[Link],
        *,
        ended: int,
        now: float,
    ) -> None:
        """Its length is by the database's clock; its end is by ours, where the run begins."""
        due = [moment.timestamp() for moment in (job.created_at, job.not_before) if moment is not None]
        if due:
            waited = max(now - max(due), 0.0)
            attributes = {**facts, "messaging.operation.name": "wait"}
            span = self._tracer.start_span(
                f"wait {job.queue}", parent, SpanKind.CONSUMER, attributes, links, ended - int(waited * 1e9)
            )
            span.end(ended)


@dataclass(frozen=True, slots=True)
class RunningSpan:
    span: Span

    def note_value(self, value: object) -> None:
        """What the handler returned; a wish may be returned as well as raised."""
        if isinstance(value, HandlerWish):
            self.note_error(value)
        else:
            self.span.set_attribute("pgq.outcome", Outcome.SUCCEEDED)

    def note_error(self, error: BaseException) -> None:
        """A handler that asks for another end than success or failure did not fail."""
        outcome = _wished_outcome(error)
        if outcome is None:
            _note_error(self.span, error)
        else:
            self.span.set_attribute("pgq.outcome", outcome)


def _wished_outcome(error: BaseException) -> Outcome | None:
    match error:
        case Cancel():
            return Outcome.CANCELLED
        case Discard():
            return Outcome.DISCARDED
        case Snooze():
            return Outcome.SNOOZED
    return None


def _parent_of_sending(given: list[SpanContext], *, is_batch: bool) -> tuple[Context | None, list[Link]]:
    """The caller's word wins, unless the current span belongs to the same trace: then that one is nearer."""
    current = trace.get_current_span().get_span_context()
    if is_batch:
        return None, [Link(context) for context in given]
    if given and given[0].trace_id != current.trace_id:
        return trace.set_span_in_context(NonRecordingSpan(given[0])), []
    return None, []


def _with_context(job: NewJob, span: Span, *, is_batch: bool) -> NewJob:
    if is_batch and job.trace_context is not None:
        return job
    return replace(job, trace_context=carrier.written(span) or job.trace_context)


def _origin_of(job: Job) -> tuple[Context | None, list[Link]]:
    origin = carrier.read(job.trace_context)
    if job.replayed_from is not None:
        links = [] if origin is None else [Link(origin, {"pgq.replayed_from": job.replayed_from})]
        return Context(), links
    return (None if origin is None else trace.set_span_in_context(NonRecordingSpan(origin), Context())), []


def _facts_of_sending(jobs: list[NewJob], queues: set[str]) -> dict[str, AttributeValue]:
    facts: dict[str, AttributeValue] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
    }
    if len(queues) == 1:
        facts["messaging.destination.name"] = jobs[0].queue
    types = {job.job_type for job in jobs}
    if len(types) == 1:
        facts["pgq.job.type"] = jobs[0].job_type
    if len(jobs) > 1:
        facts["messaging.batch.message_count"] = len(jobs)
    return facts


def _facts_of(job: Job) -> dict[str, AttributeValue]:
    facts: dict[str, AttributeValue] = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.id),
        "pgq.job.type": job.type,
        "pgq.job.attempt": job.attempt,
        "pgq.job.max_attempts": job.max_attempts,
    }
    if job.replayed_from is not None:
        facts["pgq.replayed_from"] = job.replayed_from
    if job.origin_job_id is not None:
        facts["pgq.origin_job_id"] = job.origin_job_id
    return facts


def _note_error(span: Span, error: BaseException) -> None:
    """Reading an exception runs its own code, which may be as broken as the handler."""
    words = describe(error)
    with contextlib.suppress(Exception):
        span.record_exception(error)
    span.set_attribute("error.type", f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."))
    span.set_status(Status(StatusCode.ERROR, words))
