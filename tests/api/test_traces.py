"""The trace context of a request reaches the job, whether or not the API itself traces."""

from __future__ import annotations

import httpx
import pytest

from tests.support.queue_database import QueueDatabase

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def stored(client: httpx.Client, database: QueueDatabase, headers: dict[str, str]) -> object:
    answer = client.post("/jobs", json={"type": "send_email"}, headers=headers)
    assert answer.status_code == 201, answer.text
    return database.value("SELECT trace_context FROM jobs WHERE id = %s", answer.json()["id"])


def test_trace_headers_are_kept_with_the_job(client: httpx.Client, database: QueueDatabase) -> None:
    headers = {"traceparent": PARENT, "tracestate": "vendor=1"}

    assert stored(client, database, headers) == headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"traceparent": ""},
        {"traceparent": "nonsense"},
        {"traceparent": PARENT.upper()},
        {"traceparent": "ff" + PARENT[2:]},
        {"traceparent": "00-" + "0" * 32 + PARENT[35:]},
        {"tracestate": "vendor=1"},
    ],
)
def test_a_header_that_is_no_trace_context_counts_as_absent(
    client: httpx.Client, database: QueueDatabase, headers: dict[str, str]
) -> None:
    assert stored(client, database, headers) is None


@pytest.mark.parametrize("state", [b"vendor=\xe9", b"vendor=1\tx", b"v=" + b"1" * 600, b""])
def test_a_trace_state_that_is_none_is_left_out(client: httpx.Client, database: QueueDatabase, state: bytes) -> None:
    headers = [(b"traceparent", PARENT.encode()), (b"tracestate", state)]

    answer = client.post("/jobs", json={"type": "a"}, headers=headers)

    assert answer.status_code == 201
    kept = database.value("SELECT trace_context FROM jobs WHERE id = %s", answer.json()["id"])
    assert kept == {"traceparent": PARENT}
