"""The consumer's spans: each wait and each run of a job, in the trace of its enqueue."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from psycopg import AsyncConnection, Connection

from pgq_core import Discard, Job, JobQueue, Registry, Snooze
from pgq_core.handlers import NextCall
from pgq_core.traces import run_span
from tests.support.corridors import WORKER_ID, running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async
from tests.traces.conftest import Spans, attributes, span_id, trace_id


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def enqueue(database: QueueDatabase, registry: Registry, job_type: str, **options: Any) -> int:
    with JobQueue(database.dsn, registry=registry) as queue:
        return queue.enqueue(job_type, **options).id


@pytest.mark.parametrize("kind", ["coroutine", "function", "transaction", "plain transaction"])
async def test_wait_and_run_are_children_of_the_enqueue(
    spans: Spans, database: QueueDatabase, registry: Registry, kind: str
) -> None:
    tracer = trace.get_tracer("test")

    async def in_coroutine(data: Any) -> None:
        tracer.start_span("work").end()

    def in_thread(data: Any) -> None:
        tracer.start_span("work").end()

    async def in_transaction(data: Any, conn: AsyncConnection[Any]) -> None:
        tracer.start_span("work").end()

    def in_plain_transaction(data: Any, conn: Connection[Any]) -> None:
        tracer.start_span("work").end()

    functions = {
        "coroutine": in_coroutine,
        "function": in_thread,
        "transaction": in_transaction,
        "plain transaction": in_plain_transaction,
    }
    registry.handler("work", transactional="transaction" in kind)(functions[kind])
    job_id = enqueue(database, registry, "work")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id), timeout=30)

    sent, waited, ran, work = (spans.one(name) for name in ("enqueue default", "wait default", "run default", "work"))
    assert {trace_id(span) for span in (sent, waited, ran, work)} == {trace_id(sent)}
    assert [parent_of(span) for span in (waited, ran, work)] == [span_id(sent), span_id(sent), span_id(ran)]
    assert waited.end_time == ran.start_time
    assert ran.kind is SpanKind.CONSUMER
    assert attributes(ran) == {
        "messaging.system": "pgq",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": str(job_id),
        "messaging.client.id": WORKER_ID,
        "pgq.job.type": "work",
        "pgq.job.attempt": 1,
        "pgq.job.max_attempts": 5,
        "pgq.outcome": "succeeded",
    }


async def test_each_attempt_has_its_spans_and_a_failed_one_its_error(
    spans: Spans, database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("flaky", backoff_base=0.01, backoff_cap=0.02)
    async def flaky(data: Any, job: Job) -> None:
        if job.attempt == 1:
            raise ValueError("not yet")

    job_id = enqueue(database, registry, "flaky")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: len(database.runs(job_id)) == 2, timeout=30)

    first, second = spans.named("run default")
    assert len(spans.named("wait default")) == 2
    assert trace_id(first) == trace_id(second) == trace_id(spans.one("enqueue default"))
    assert [attributes(span)["pgq.job.attempt"] for span in (first, second)] == [1, 2]
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError: not yet")
    assert attributes(first)["error.type"] == "ValueError"
    assert (first.events[0].attributes or {})["exception.message"] == "not yet"
    assert second.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(("wish", "outcome"), [(Snooze(3600), "snoozed"), (Discard("gone"), "discarded")])
async def test_a_wish_is_no_error(
    spans: Spans, database: QueueDatabase, registry: Registry, wish: Exception, outcome: str
) -> None:
    @registry.handler("raises")
    async def raises(data: Any) -> None:
        raise wish

    @registry.handler("returns")
    def returns(data: Any) -> Exception:
        return wish

    job_ids = [enqueue(database, registry, name) for name in ("raises", "returns")]

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: all(database.outcomes(job_id) for job_id in job_ids), timeout=30)

    assert [database.outcomes(job_id) for job_id in job_ids] == [[outcome], [outcome]]
    runs = spans.named("run default")
    assert [attributes(span)["pgq.outcome"] for span in runs] == [outcome, outcome]
    assert {span.status.status_code for span in runs} == {StatusCode.UNSET}


async def test_a_run_that_is_stopped_at_its_time_limit_is_an_error(
    spans: Spans, database: QueueDatabase, registry: Registry
) -> None:
    import asyncio

    @registry.handler("slow", max_attempts=1, timeout=0.05)
    async def slow(data: Any) -> None:
        await asyncio.sleep(60)

    job_id = enqueue(database, registry, "slow")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.letter(job_id), timeout=30)

    span = spans.one("run default")
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "asyncio.exceptions.CancelledError"


async def test_a_replay_is_a_trace_of_its_own_that_is_linked_to_the_original(
    spans: Spans, database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("fails", max_attempts=1)
    async def fails(data: Any, job: Job) -> None:
        if job.replayed_from is None:
            raise ValueError("first time")

    job_id = enqueue(database, registry, "fails")

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id), timeout=30)
        assert letter is not None
        replay_id = database.value("SELECT replay(%s)", letter["id"])
        await eventually_async(lambda: database.outcomes(replay_id), timeout=30)

    sent = spans.one("enqueue default")
    died, replayed = spans.named("run default")
    assert trace_id(died) == trace_id(sent)
    assert replayed.parent is None
    assert trace_id(replayed) != trace_id(sent)
    (link,) = replayed.links
    assert (link.context.trace_id, link.context.span_id) == (trace_id(sent), span_id(sent))
    assert attributes(replayed)["pgq.replayed_from"] == letter["id"]
    assert attributes(replayed)["pgq.origin_job_id"] == job_id


async def test_middleware_of_the_application_runs_inside_the_span(
    spans: Spans, database: QueueDatabase, registry: Registry
) -> None:
    seen: list[int] = []

    @registry.middleware
    async def report(job: Job, call_next: NextCall) -> Any:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return await call_next()

    @registry.handler("work")
    def work(data: Any) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    job_id = database.put("work")  # by plain SQL, without a trace context: its run begins a trace

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id), timeout=30)

    ran = spans.one("run default")
    assert seen == [span_id(ran)] * 2
    assert ran.parent is None


def test_a_loop_of_one_s_own_has_its_span_too(spans: Spans, database: QueueDatabase, registry: Registry) -> None:
    with JobQueue(database.dsn, registry=registry) as queue:
        queue.enqueue("work")
        (job,) = queue.claim()
        with run_span(job):
            here = trace.get_current_span().get_span_context().span_id
        queue.complete(job)

    ran = spans.one("run default")
    assert (span_id(ran), parent_of(ran)) == (here, span_id(spans.one("enqueue default")))


async def test_without_a_provider_the_corridor_runs_the_application_s_own_registry(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("work")
    async def work(data: Any) -> None: ...

    async with running_corridor(database.dsn, registry) as running:
        assert running.corridor.executor._registry is registry
