"""HTTP on the wire: uvicorn's fast parser, with the bounds that it lacks, and faults told as all others are."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pgq_core.api.problems import MEDIA_TYPE, ProblemError

LONGEST_HEAD: Final = 32 * 1024
"""Bytes that may come before a request's headers, or the trailers of a body, have ended."""
SLOWEST_HEAD: Final = 10.0
"""Seconds from the first byte of a request, or from the connection, until its headers have ended."""
_FRAMING: Final = (b"content-length", b"transfer-encoding")


class _Place(Enum):
    """Where in the stream of a connection the parser stands."""

    BETWEEN = auto()
    HEAD = auto()
    BODY = auto()


class BoundedHttp(HttpToolsProtocol):
    """Without it a client could send headers, chunk extensions or trailers for ever, and all would be kept.

    Offers to speak another protocol are declined by going on as if they had not been made (RFC 9110, 7.8): Java's own
    client makes one with its first request.
    """

    _unfinished = 0
    _place = _Place.BETWEEN
    _timer: asyncio.TimerHandle | None = None
    _is_muted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's signature
        super().connection_made(transport)
        self.parser = _Parser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unfinished > LONGEST_HEAD:
            self._give_up(ProblemError(400, "malformed", "the head of the request is too long"))
        self._watch()

    def on_message_begin(self) -> None:
        if not self._is_muted:
            self._place = _Place.HEAD
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._is_muted:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_muted:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unfinished = 0
        if not self._is_muted:
            self._place = _Place.BODY
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._place = _Place.BETWEEN
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Called by the parser's caller. What is wrong is known to the parser alone."""
        self._give_up(ProblemError(400, "malformed", "this is no HTTP/1.1 request that can be read"))

    def decline_upgrade(self, rest: bytes) -> None:
        """The parser takes what follows the headers for another protocol: it is the body, and then more requests."""
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in _FRAMING]
        if framing:
            self._place = _Place.BODY
            self.cycle.more_body = True
            self._is_muted = True
            try:
                self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing))
            finally:
                self._is_muted = False
        if rest:
            self.parser.feed_data(rest)

    @property
    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _watch(self) -> None:
        """Bodies that somebody waits for have a limit of their own, and connections without a request uvicorn's.

        What is left: heads, and bytes after an answer that are no new request, each of which puts uvicorn's limit off.
        """
        if self._is_answering and self._place is not _Place.HEAD:
            self._unwatch()
        elif self._timer is None:
            self._timer = self.loop.call_later(SLOWEST_HEAD, self._head_is_late)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._is_answering:  # an earlier request of this connection: its answer comes first
            self._watch()
        elif self._place is _Place.HEAD:
            self._give_up(ProblemError(408, "too-slow", f"the head did not arrive within {SLOWEST_HEAD:g} s"))
        else:
            self.transport.close()

    def _give_up(self, problem: ProblemError) -> None:
        body = problem.body
        head = (
            f"HTTP/1.1 {problem.status} {problem.problem.title}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Parser(httptools.HttpRequestParser):
    """Goes on after an offer of another protocol instead of stopping there."""

    def __init__(self, protocol: BoundedHttp) -> None:
        super().__init__(protocol)
        self._protocol = protocol

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # nothing else is ever given
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._protocol.decline_upgrade(data[offer.args[0] :])
