"""What comes over the wire before there is a request: late, broken, or with an offer of another protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from pgq_core.api import wire
from pgq_core.api.wire import BoundedHttp

PATIENCE = 60.0
BODY = b'{"a": 1}'
CLOSE = b"Host: localhost\r\nConnection: close\r\n"
LENGTH = b"Content-Length: 8\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
OFFERS = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    "websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers what came."""
    if scope["path"] == "/unread":
        await JSONResponse("not looked at")(scope, receive, send)
        return
    body = await Request(scope, receive).body()
    await JSONResponse({"path": scope["path"], "body": body.decode()})(scope, receive, send)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(echo, http=BoundedHttp, ws="none", lifespan="off", log_config=None, timeout_keep_alive=600)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedHttp(config, state, {}), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for protocol in list(state.connections):
        protocol.shutdown()


async def told(port: int, *parts: bytes) -> bytes:
    """All that is answered until the server hangs up. The parts arrive one by one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        return await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()


def body_of(answer: bytes) -> object:
    return json.loads(answer.rpartition(b"\r\n\r\n")[2])


@pytest.fixture
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SLOWEST_HEAD", 0.2)


@pytest.mark.usefixtures("in_haste")
async def test_a_head_that_does_not_arrive_is_answered_and_hung_up(port: int) -> None:
    answer = await told(port, b"GET / HTTP/1.1\r\nHost: local")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/problem+json" in answer
    assert b'"too-slow"' in answer


@pytest.mark.usefixtures("in_haste")
@pytest.mark.parametrize("nothing", [b"", b"\r\n"])
async def test_who_says_nothing_is_hung_up_on(port: int, nothing: bytes) -> None:
    assert await told(port, nothing) == b""


@pytest.mark.usefixtures("in_haste")
@pytest.mark.parametrize("more", [b"\r\n", b"GET "], ids=["line ends", "half a request"])
async def test_a_second_head_has_its_limit_as_well(port: int, more: bytes) -> None:
    answer = await told(port, b"GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n", more)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 408 ") == (more == b"GET ")


@pytest.mark.usefixtures("in_haste")
async def test_a_body_that_nobody_reads_cannot_go_on_for_ever(port: int) -> None:
    answer = await told(port, b"POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", b"x")

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "bytes_of_something_else",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"NOTHING / HTTP/1.1\r\n\r\n"],
    ids=["TLS", "HTTP/2", "method"],
)
async def test_what_is_no_http_is_a_problem_of_the_usual_form(port: int, bytes_of_something_else: bytes) -> None:
    answer = await told(port, bytes_of_something_else)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in answer
    problem = body_of(answer)
    assert isinstance(problem, dict)
    assert (problem["type"], problem["status"]) == ("malformed", 400)


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize(
    "parts",
    [
        (LENGTH + b"\r\n" + BODY,),
        (LENGTH + b"\r\n", BODY[:3], BODY[3:]),
        (CHUNKED + b"\r\n8\r\n" + BODY + b"\r\n0\r\n\r\n",),
        (CHUNKED + b"\r\n", b"3\r\n" + BODY[:3] + b"\r\n5\r\n", BODY[3:] + b"\r\n0\r\n\r\n"),
    ],
    ids=["length", "length in parts", "chunks", "chunks in parts"],
)
async def test_a_body_arrives_whole_with_an_offer_to_speak_another_protocol(
    port: int, offer: bytes, parts: tuple[bytes, ...]
) -> None:
    first, *rest = parts

    answer = await told(
        port,
        b"POST /first HTTP/1.1\r\nHost: localhost\r\n" + offer + first,
        *rest,
        b"GET /second HTTP/1.1\r\n" + CLOSE + b"\r\n",
    )

    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert json.dumps(BODY.decode()).encode() in answer
    assert body_of(answer) == {"path": "/second", "body": ""}


async def test_a_request_behind_an_offer_is_answered_too(port: int) -> None:
    head = b"GET /first HTTP/1.1\r\nHost: localhost\r\n" + OFFERS["h2c"] + b"\r\n"

    answer = await told(port, head + b"GET /second HTTP/1.1\r\n" + CLOSE + b"\r\n")

    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert body_of(answer) == {"path": "/second", "body": ""}
