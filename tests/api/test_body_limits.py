"""How much a request may carry, and how the answer reaches a client that is still sending."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.api.server import JSON_HEADERS, ApiProcess, is_problem
from tests.support.queue_database import QueueDatabase

LIMIT = 1024 * 1024
MEGABYTE = b"x" * LIMIT


def body_of(size: int) -> bytes:
    frame = len(json.dumps({"type": "a", "data": ""}))
    return json.dumps({"type": "a", "data": "x" * (size - frame)}).encode()


def test_a_body_up_to_the_limit_is_accepted_and_one_above_is_not(client: httpx.Client, database: QueueDatabase) -> None:
    answers = [client.post("/jobs", content=body_of(LIMIT + more), headers=JSON_HEADERS) for more in (-1, 0, 1)]

    assert [answer.status_code for answer in answers] == [201, 201, 413]
    assert is_problem(answers[2], 413)
    assert database.value("SELECT count(*) FROM jobs") == 2


def test_lists_do_not_load_payloads(client: httpx.Client, database: QueueDatabase) -> None:
    client.post("/jobs", content=body_of(LIMIT), headers=JSON_HEADERS)

    assert len(client.get("/queues").content) < 10_000


def endless(chunks: int) -> Iterator[bytes]:
    yield b'{"type": "a", "data": "'
    for _ in range(chunks):
        yield MEGABYTE


def test_a_stream_without_a_length_is_cut_off_early(
    client: httpx.Client, api: ApiProcess, database: QueueDatabase
) -> None:
    process = psutil.Process(api.process.pid)
    before = process.memory_info().rss
    sent = []

    def counted() -> Iterator[bytes]:
        for chunk in endless(300):
            sent.append(len(chunk))
            yield chunk

    refused = client.post("/jobs", content=counted(), headers=JSON_HEADERS)

    assert is_problem(refused, 413)
    assert sum(sent) < 64 * LIMIT
    assert process.memory_info().rss - before < 32 * LIMIT


def test_a_length_above_the_limit_is_refused_before_the_body_is_sent(api: ApiProcess) -> None:
    where = urlsplit(api.url)
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {300 * LIMIT}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port or 0), timeout=60) as connection:
        connection.sendall(head.encode())

        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("length", ["-1", "1e3", "abc", "9" * 400])
def test_a_length_that_is_none_is_no_fault_of_ours(api: ApiProcess, length: str) -> None:
    where = urlsplit(api.url)
    head = f"POST /jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: {length}\r\n\r\n{{}}"
    with socket.create_connection((where.hostname, where.port or 0), timeout=60) as connection:
        connection.sendall(head.encode())

        assert connection.recv(4096).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ",
        b"GET /",
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Trailer: ",
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2;extension=",
    ],
    ids=["header", "path", "trailer", "chunk extension"],
)
def test_a_head_that_does_not_end_is_refused(api: ApiProcess, begin: bytes) -> None:
    where = urlsplit(api.url)
    sent = 0
    with socket.create_connection((where.hostname, where.port or 0), timeout=30) as connection:
        connection.sendall(begin)
        with contextlib.suppress(ConnectionError):
            while sent < 8 * LIMIT and not select.select([connection], [], [], 0)[0]:
                connection.sendall(MEGABYTE[: 16 * 1024])
                sent += 16 * 1024

        assert sent < 8 * LIMIT
        with contextlib.suppress(ConnectionError):
            assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
