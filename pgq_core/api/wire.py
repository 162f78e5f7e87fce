"""HTTP on the wire: uvicorn's fast parser, with the bound on heads that it lacks."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD: Final = 32 * 1024
"""Bytes that may come before a request's headers, or the trailers of a body, have ended."""


class BoundedHttp(HttpToolsProtocol):
    """Without it a client could send headers, chunk extensions or trailers for ever, and all would be kept."""

    _unfinished = 0

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self) -> None:
        self._unfinished = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        super().on_message_complete()
