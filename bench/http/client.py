#!/usr/bin/env python3
"""Keeps some clients busy, each with one POST after the other, and says as JSON how many were answered and how soon.

A process of its own: what it needs of the processor shall not be taken for the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from urllib.parse import urlsplit

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length: "


class Client(asyncio.Protocol):
    """One connection that is kept alive. Parsing is the bare minimum: only the status and the length count."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._buffer = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._pace.is_over:
            self._pace.fail(f"the server closed the connection: {error}")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(_END_OF_HEAD)
        if not end:
            return
        at = head.lower().find(_LENGTH)
        if at < 0 or len(body) < int(head[at + len(_LENGTH) :].partition(b"\r")[0]):
            return
        self._buffer = b""
        self._pace.count(head, time.perf_counter() - self._sent_at)
        if not self._pace.is_over:
            self._send()

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._pace.request())


class Pace:
    """When to begin to count, when to stop, and what was counted."""

    def __init__(self, host: str, *, warm_up: float, seconds: float, keyed: bool) -> None:
        self._host = host
        self._begins_at = time.perf_counter() + warm_up
        self._ends_at = self._begins_at + seconds
        self._seconds = seconds
        self._keyed = keyed
        self._number = 0
        self._latencies: list[float] = []
        self._run = str(time.time_ns())
        self.done = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._ends_at

    def request(self) -> bytes:
        self._number += 1
        job: dict[str, object] = {"type": "send_email", "data": {"to": "a@example.org", "n": self._number}}
        if self._keyed:
            job["idempotency_key"] = f"{self._run}-{self._number}"
        body = json.dumps(job).encode()
        lines = ("POST /jobs HTTP/1.1", f"Host: {self._host}", "Content-Type: application/json")
        return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body

    def count(self, head: bytes, latency: float) -> None:
        if not head.startswith(b"HTTP/1.1 201"):
            self.fail(head.decode("latin-1"))
        elif self.is_over:
            if not self.done.done():
                self.done.set_result(None)
        elif time.perf_counter() >= self._begins_at:
            self._latencies.append(latency)

    def fail(self, words: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(words))

    def result(self) -> dict[str, object]:
        return {"seconds": self._seconds, "latencies": self._latencies}


async def drive(url: str, *, clients: int, warm_up: float, seconds: float, keyed: bool) -> dict[str, object]:
    where = urlsplit(url)
    pace = Pace(where.netloc, warm_up=warm_up, seconds=seconds, keyed=keyed)
    loop = asyncio.get_running_loop()
    opened = [await loop.create_connection(lambda: Client(pace), where.hostname, where.port) for _ in range(clients)]
    await pace.done
    for transport, _ in opened:
        transport.close()
    return pace.result()


if __name__ == "__main__":
    url, clients, warm_up, seconds, keyed = sys.argv[1:]
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    given = {"clients": int(clients), "warm_up": float(warm_up), "seconds": float(seconds), "keyed": keyed == "keyed"}
    json.dump(asyncio.run(drive(url, **given)), sys.stdout)
