"""Requests that share a statement keep their traces apart."""

from __future__ import annotations

import asyncio

import httpx

from tests.api.server import in_process
from tests.support.queue_database import QueueDatabase
from tests.traces.conftest import Spans, span_id

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def trace_of(database: QueueDatabase, job_id: int) -> str:
    context = database.value("SELECT trace_context FROM jobs WHERE id = %s", job_id)
    return str(context["traceparent"]).split("-")[1]


async def test_a_header_reaches_the_job_by_the_spans_of_the_api(spans: Spans, database: QueueDatabase) -> None:
    async with in_process(database.dsn) as client:
        answer = await client.post("/jobs", json={"type": "send_email"}, headers={"traceparent": REMOTE})

    sent = spans.one("enqueue default")
    assert sent.parent is not None
    # A web framework that traces by itself has a span of its own between the two.
    between = {span_id(span) for span in spans.named("POST /jobs")}
    assert sent.parent.span_id in between | {int(REMOTE.split("-")[2], 16)}
    assert trace_of(database, answer.json()["id"]) == REMOTE.split("-")[1]


async def test_each_of_many_requests_at_a_time_keeps_its_own_trace(spans: Spans, database: QueueDatabase) -> None:
    async def post(client: httpx.AsyncClient, number: int) -> str:
        header = f"00-{number:032x}-b7ad6b7169203331-01"
        answer = await client.post("/jobs", json={"type": "send_email"}, headers={"traceparent": header})
        return trace_of(database, answer.json()["id"])

    async with in_process(database.dsn) as client:
        traces = await asyncio.gather(*[post(client, number) for number in range(1, 21)])

    assert traces == [f"{number:032x}" for number in range(1, 21)]
