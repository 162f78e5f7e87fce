"""What every Python adapter shares: its command line, the counter of handler starts, the things a peer can do.

An adapter is a script that the harness runs with the peer's own interpreter, so this file needs nothing but Python:

    python adapters/<peer>.py describe | setup | single | bulk | produce | work --dsn DSN ...

Every operation but `work` prints one line of JSON at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

SLOT_BYTES = 64
"""Per worker process: jobs started, first start, last start (nanoseconds of the machine's monotonic clock)."""
STAMPS_AT = 4096
"""Behind the slots: one start per job number, where asked for."""

Put = Callable[[int], Awaitable[object]]


class Recorder:
    """Counts handler starts in a file that the harness has mapped too: counting costs the database nothing."""

    def __init__(self, path: str, slot: int, *, with_stamps: bool) -> None:
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._at = slot * SLOT_BYTES
        self._with_stamps = with_stamps
        self._count = self._first = 0
        self._write_slot = struct.Struct("<QQQ").pack_into
        self._write_stamp = struct.Struct("<Q").pack_into

    def hit(self, number: int) -> None:
        now = time.monotonic_ns()
        if not self._count:
            self._first = now
        self._count += 1
        self._write_slot(self._memory, self._at, self._count, self._first, now)
        if self._with_stamps:
            self._write_stamp(self._memory, STAMPS_AT + 8 * number, now)


class Peer:
    """One queue. Subclass it, fill in what it can do, and end the file with `main(ThePeer)`."""

    name = "?"
    packages: ClassVar[list[str]] = []
    """Distributions whose versions are reported."""
    options: ClassVar[dict[str, Any]] = {}
    """Defaults of `--opt`: the documented fast production setting."""
    steps: ClassVar[list[str]] = ["single", "bulk", "drain", "pickup"]
    scale = 1.0
    """Share of the harness's `--jobs` in a drain: slow peers get fewer, so that each drain takes some seconds."""
    bulk_scale: float | None = None
    """Share of `--jobs` in the bulk run; default: `scale`, at least 1."""
    single_jobs = 1000
    unfinished_sql = ""
    """One boolean: is any job not finished?"""
    audit = ""
    """What is kept of a finished job."""
    notes = ""

    def __init__(self, dsn: str, opt: dict[str, Any], slot: tuple[str, int, bool] = ("", 0, False)) -> None:
        self.dsn = dsn
        self.opt = opt
        self.slot = slot
        """Arguments of a Recorder, for a peer whose handlers run in a process of their own."""

    async def setup(self) -> None:
        """Make the schema in an empty database."""
        raise NotImplementedError

    async def open_producer(self) -> Put:
        """Connect; return `put(n)`, which enqueues one job and commits."""
        raise NotImplementedError

    async def close_producer(self) -> None:
        """Give back what `open_producer` took."""

    async def open_bulk(self) -> None:
        """Connect, before the clock of `bulk` starts."""

    async def bulk(self, jobs: int) -> None:
        """Enqueue jobs 0 to `jobs` - 1 by the peer's batch API."""
        raise NotImplementedError

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        """Connect, call `ready()`, which blocks until the harness says go, then work until SIGTERM."""
        raise NotImplementedError


def main(kind: type[Peer]) -> None:
    args = _parser().parse_args()
    opt = dict(kind.options) | dict(_option(text) for text in args.opt)
    peer = kind(args.dsn, opt, (args.rec, args.slot, args.stamps))
    match args.op:
        case "describe":
            _answer(_description(kind, opt))
        case "setup":
            asyncio.run(peer.setup())
            _answer({})
        case "single":
            _answer({"seconds": asyncio.run(_single(peer, args.n)), "jobs": args.n})
        case "bulk":
            _answer({"seconds": asyncio.run(_bulk(peer, args.n)), "jobs": args.n})
        case "produce":
            _answer({"times": asyncio.run(_produce(peer, args.n, args.interval))})
        case "work":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            peer.work(Recorder(args.rec, args.slot, with_stamps=args.stamps), _ready)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("op", choices=["describe", "setup", "single", "bulk", "produce", "work"])
    parser.add_argument("--dsn", default="")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.05)
    parser.add_argument("--rec", default="")
    parser.add_argument("--slot", type=int, default=0)
    parser.add_argument("--stamps", action="store_true")
    parser.add_argument("--opt", action="append", default=[], metavar="KEY=VALUE")
    return parser


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _description(kind: type[Peer], opt: dict[str, Any]) -> dict[str, Any]:
    return {
        "versions": {package: _version(package) for package in kind.packages},
        "runtime": f"Python {sys.version.split()[0]}",
        "options": opt,
        "steps": kind.steps,
        "scale": kind.scale,
        "bulk_scale": kind.bulk_scale,
        "single_jobs": kind.single_jobs,
        "unfinished_sql": kind.unfinished_sql,
        "audit": kind.audit,
        "notes": kind.notes,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _single(peer: Peer, jobs: int) -> float:
    put = await peer.open_producer()
    await put(0)
    started_at = time.perf_counter()
    for number in range(jobs):
        await put(number)
    seconds = time.perf_counter() - started_at
    await peer.close_producer()
    return seconds


async def _bulk(peer: Peer, jobs: int) -> float:
    await peer.open_bulk()
    started_at = time.perf_counter()
    await peer.bulk(jobs)
    return time.perf_counter() - started_at


async def _produce(peer: Peer, jobs: int, interval: float) -> list[tuple[int, int]]:
    """One job every `interval` seconds, at times fixed in advance: when each call began and when it returned."""
    put = await peer.open_producer()
    times = []
    start = time.monotonic()
    for number in range(jobs):
        await asyncio.sleep(max(0.0, start + (number + 1) * interval - time.monotonic()))
        called_at = time.monotonic_ns()
        await put(number)
        times.append((called_at, time.monotonic_ns()))
    await peer.close_producer()
    return times


def _ready() -> None:
    print("READY", flush=True)
    if not sys.stdin.readline():
        os._exit(0)


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value))
