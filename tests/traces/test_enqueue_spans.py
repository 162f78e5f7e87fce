"""The producer's span, and what of it is stored with the job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from pgq_core import AsyncJobQueue, JobQueue, JobRequest, KeyConflict, Registry
from tests.support.queue_database import QueueDatabase
from tests.traces.conftest import Spans, attributes, span_id, trace_id, traceparent

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def queue(database: QueueDatabase, registry: Registry) -> Iterator[JobQueue]:
    with JobQueue(database.dsn, registry=registry) as opened:
        yield opened


def stored(database: QueueDatabase, job_id: int) -> object:
    return database.value("SELECT trace_context FROM jobs WHERE id = %s", job_id)


def test_an_enqueue_is_a_producers_span_whose_context_is_stored_with_the_job(
    spans: Spans, queue: JobQueue, database: QueueDatabase
) -> None:
    with trace.get_tracer("test").start_as_current_span("request"):
        job = queue.enqueue("send_email", {"to": "a@example.org"}, queue="mail")

    span, request = spans.one("enqueue mail"), spans.one("request")
    assert span.kind is SpanKind.PRODUCER
    assert span.parent is not None
    assert span.parent.span_id == span_id(request)
    assert attributes(span) == {
        "messaging.system": "pgq",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(job.id),
        "pgq.job.type": "send_email",
        "pgq.jobs.created": 1,
    }
    assert stored(database, job.id) == {"traceparent": traceparent(span)}


async def test_the_asynchronous_queue_traces_alike(spans: Spans, database: QueueDatabase, registry: Registry) -> None:
    async with AsyncJobQueue(database.dsn, registry=registry) as queue:
        job = await queue.enqueue("send_email", idempotency_key="once")
        again = await queue.enqueue("send_email", idempotency_key="once")

    first, second = spans.named("enqueue default")
    assert again.id == job.id
    assert stored(database, job.id) == {"traceparent": traceparent(first)}
    assert [attributes(span)["pgq.jobs.created"] for span in (first, second)] == [1, 0]
    assert attributes(second)["messaging.message.id"] == str(job.id)


def test_a_batch_is_one_span(spans: Spans, queue: JobQueue, database: QueueDatabase) -> None:
    own = JobRequest("c", trace_context={"traceparent": REMOTE})
    jobs = queue.enqueue_many([("a", {}), ("b", {}), own])

    span = spans.one("enqueue default")
    assert attributes(span)["messaging.batch.message_count"] == 3
    assert [stored(database, job.id) for job in jobs] == [
        {"traceparent": traceparent(span)},
        {"traceparent": traceparent(span)},
        {"traceparent": REMOTE},
    ]
    assert [link.context.trace_id for link in span.links] == [int(REMOTE[3:35], 16)]


def test_a_context_that_the_caller_gives_is_the_parent(spans: Spans, queue: JobQueue, database: QueueDatabase) -> None:
    job = queue.enqueue("send_email", trace_context={"traceparent": REMOTE, "tracestate": "vendor=1"})

    span = spans.one("enqueue default")
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" == REMOTE[3:52]
    assert stored(database, job.id) == {"traceparent": traceparent(span), "tracestate": "vendor=1"}


@pytest.mark.parametrize("context", ["words", ["a"], {"traceparent": 7}, {"traceparent": "00-nonsense"}, 1])
def test_a_context_that_is_none_begins_a_new_trace(spans: Spans, queue: JobQueue, context: object) -> None:
    queue.enqueue("send_email", trace_context=context)

    assert spans.one("enqueue default").parent is None


def test_a_refused_enqueue_is_an_error_of_its_span(spans: Spans, queue: JobQueue) -> None:
    queue.enqueue("send_email", {"a": 1}, idempotency_key="once")

    with pytest.raises(KeyConflict):
        queue.enqueue("send_email", {"a": 2}, idempotency_key="once")

    span = spans.named("enqueue default")[1]
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "pgq_core.errors.KeyConflict"
    assert [event.name for event in span.events] == ["exception"]


def test_the_caller_s_transaction_takes_the_context_along(
    spans: Spans, queue: JobQueue, database: QueueDatabase
) -> None:
    with psycopg.connect(database.dsn) as conn:
        job = queue.enqueue("send_email", conn=conn)
        conn.rollback()
        kept = queue.enqueue("send_email", conn=conn)

    assert database.job(job.id) is None
    assert stored(database, kept.id) == {"traceparent": traceparent(spans.named("enqueue default")[1])}


def test_a_current_span_of_the_given_trace_is_the_nearer_parent(spans: Spans, queue: JobQueue) -> None:
    """As under an instrumented web framework, whose span is a child of the header that the HTTP API passes on."""
    with trace.get_tracer("test").start_as_current_span("request") as request:
        here = request.get_span_context()
        header = f"00-{here.trace_id:032x}-b7ad6b7169203331-01"
        queue.enqueue("send_email", trace_context={"traceparent": header})

    span = spans.one("enqueue default")
    assert trace_id(span) == here.trace_id
    assert span.parent is not None
    assert span.parent.span_id == here.span_id


WITHOUT_TRACES = """
import sys
from pgq_core import JobQueue
with JobQueue(sys.argv[1]) as queue:
    job = queue.enqueue("a", trace_context={"traceparent": sys.argv[2]})
print(job.id, sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_nothing_of_opentelemetry_is_imported_where_nobody_configured_it(database: QueueDatabase) -> None:
    command = [sys.executable, "-c", WITHOUT_TRACES, database.dsn, REMOTE]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    job_id, modules = answer.split(maxsplit=1)
    assert modules.strip() == "[]"
    assert stored(database, int(job_id)) == {"traceparent": REMOTE}


def test_an_imported_api_without_a_provider_leaves_the_job_alone(queue: JobQueue, database: QueueDatabase) -> None:
    job = queue.enqueue("send_email")

    assert stored(database, job.id) is None
