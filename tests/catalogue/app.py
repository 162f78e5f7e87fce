"""Jobs that a worker should survive."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any

from pgq_core.handlers import handler


@handler("noop")
async def noop(data: Any) -> None:
    pass


@handler("print_bytes")
def print_bytes(data: Any) -> None:
    """Bytes of no encoding, and a character cut in two by the end of a write."""
    for stream in (1, 2):
        os.write(stream, bytes(range(0x80, 0x100)) + b"\n")
        os.write(stream, "日".encode()[:2])
        time.sleep(0.02)
        os.write(stream, "日".encode()[2:] + b"\n")


@handler("ignore_stop")
async def ignore_stop(data: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@handler("read_socket")
def read_socket(data: Any) -> None:
    one, _other = socket.socketpair()
    one.recv(1)


@handler("sleep")
async def sleep(data: dict[str, float]) -> None:
    import asyncio

    await asyncio.sleep(data["seconds"])
