"""Everything that is decided about a request before its path counts: who calls by which name, how often, how much."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pgq_core.api.origins import Origins
from pgq_core.api.problems import ProblemError
from pgq_core.api.rate_limit import RateLimit
from pgq_core.api.traffic import Traffic
from pgq_core.domain.text import describe
from pgq_core.logs import get_logger

PROBES: Final = ("/healthz", "/readyz")
"""Asked by machines that know an address and no name."""
_UNLIMITED: Final = (*PROBES, "/metrics")
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS", "TRACE")
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers send their own forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_TOO_LARGE: Final = 413
_READ_ON: Final = 4 * 1024 * 1024
_READ_ON_FOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class DoorRules:
    origins: Origins
    rate_limit: RateLimit
    max_body: int


class Doorman:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, rules: DoorRules, traffic: Traffic) -> None:
        self._app = app
        self._rules = rules
        self._traffic = traffic
        self._logger = get_logger("pgq.api")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, receive, reads_on="expect" not in Headers(scope=scope))
        began_at = time.monotonic()
        asked = _as_get(scope)
        try:
            await self._serve(asked, receive, answer)
        except Exception as error:
            self._logger.exception("http_request_failed", error=describe(error), path=scope["path"])
            await answer.give(ProblemError(500, "fault", "this is a fault of the server; its log says more"))
        self._traffic.count(asked, answer.status, time.monotonic() - began_at, method=scope["method"])

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = Headers(scope=scope)
        objection = self._objection(scope, headers)
        if objection is None:
            await self._app(scope, _LimitedBody(receive, self._rules.max_body), answer.send)
        else:
            await answer.give(objection)

    def _objection(self, scope: Scope, headers: Headers) -> ProblemError | None:
        path = scope["path"]
        if path not in PROBES and (problem := self._stranger(scope, headers)):
            return problem
        wait = 0 if path in _UNLIMITED else self._rules.rate_limit.seconds_to_wait(_client(scope))
        if wait:
            return ProblemError(429, "too-many-requests", f"try again in {wait} s", headers={"Retry-After": str(wait)})
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._rules.max_body:
            return too_large(self._rules.max_body)
        return None

    def _stranger(self, scope: Scope, headers: Headers) -> ProblemError | None:
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else None  # with two of them, a proxy before us may have read the other
        if host is None or not self._rules.origins.knows_host(host):
            return ProblemError(
                421, "unknown-host", "this server is not known by that name; allow it by --allow-host, PGQ_API_HOSTS"
            )
        if scope["method"] not in _SAFE_METHODS and not self._rules.origins.may_send(
            host=host, origin=headers.get("origin"), fetch_site=headers.get("sec-fetch-site")
        ):
            return ProblemError(403, "foreign-origin", "pages of that origin may not send requests here")
        return None


def _as_get(scope: Scope) -> Scope:
    """HEAD is answered as GET is, on every path; the server below keeps the body of the answer to itself."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


def too_large(limit: int) -> ProblemError:
    return ProblemError(413, "too-large", f"the body is longer than {limit} bytes", headers={"Connection": "close"})


class _Answer:
    """Passes a response on with the headers that every response has; knows whether there was one.

    A client that is still sending a body that is too large gets the whole answer first and is read from for a while
    after it: closing on unread data resets the connection, and with it goes what the client has not read yet.
    """

    def __init__(self, send: Send, receive: Receive, *, reads_on: bool) -> None:
        self._send = send
        self._receive = receive
        # Who asked before sending (Expect: 100-continue) sends nothing after this answer.
        self._reads_on = reads_on
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last and self.status == _TOO_LARGE and self._reads_on:
            await self._send({**message, "more_body": True})
            await _read_on(self._receive)
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def give(self, problem: ProblemError) -> None:
        if self.status:
            return  # too late: a response has begun
        response = problem.response()
        await self.send({"type": "http.response.start", "status": problem.status, "headers": response.raw_headers})
        await self.send({"type": "http.response.body", "body": response.body})


class _LimitedBody:
    """Counts what comes in, also without a Content-Length, and stops at the limit."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._left = limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise too_large(self._limit)
        return message


async def _read_on(receive: Receive) -> None:
    """Throws away what still comes, for a bounded time and amount, until the client is done or gone."""
    left = _READ_ON
    try:
        async with asyncio.timeout(_READ_ON_FOR):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "local"
