"""The jobs of the torture runs. Each writes into the effects ledger, which is the judge of what really ran."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
from typing import Any

from pgq_core.domain.job import Job
from pgq_core.handlers import handler
from pgq_core.worker.context import JobContext
from tests.torture.ledger import LEDGER_VARIABLE, note

MEMORY_ROOM = 64 * 1024 * 1024


def _note(event: str, context: JobContext) -> None:
    note(os.environ[LEDGER_VARIABLE], event, context.job.id, context.job.attempt, context.worker_id)


@handler("noop")
async def noop(data: Any, context: JobContext) -> None:
    _note("start", context)
    _note("end", context)


@handler("nap")
async def nap(data: dict[str, float], context: JobContext) -> None:
    """Takes time and no processor: a load whose rate is the number of slots, not the machine's mood."""
    _note("start", context)
    await asyncio.sleep(data["seconds"])
    _note("end", context)


@handler("sleep")
def sleep(data: dict[str, float], context: JobContext) -> None:
    """The same in a thread."""
    _note("start", context)
    time.sleep(data["seconds"])
    _note("end", context)


@handler("steps")
def steps(data: dict[str, Any], context: JobContext) -> None:
    """Sleeps in short steps, each with a line in the ledger."""
    _note("start", context)
    for _ in range(int(data["steps"])):
        time.sleep(data["seconds"])
        _note("step", context)
    _note("end", context)


@handler("fail")
async def fail(data: dict[str, Any], context: JobContext) -> None:
    _note("start", context)
    _note("end", context)
    raise RuntimeError(data.get("text", "simulated failure"))


@handler("crash")
def crash(data: dict[str, str], context: JobContext) -> None:
    """Takes its process with it, in one of the ways of `CRASHES`."""
    _note("start", context)
    CRASHES[data["how"]]()
    time.sleep(60)


def _segfault() -> None:
    import ctypes

    ctypes.string_at(0)


def _exceed_memory() -> None:
    """What an out-of-memory killer does, as near as a process can do it to itself: it gets no more, and is killed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_ROOM, MEMORY_ROOM))
    try:
        while True:
            _hoard.append(bytearray(MEMORY_ROOM))
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)


_hoard: list[bytearray] = []

CRASHES = {
    "segfault": _segfault,
    "abort": os.abort,
    "exit 0": lambda: os._exit(0),
    "kill itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory limit": _exceed_memory,
}
DEATHS = {
    "segfault": "SIGSEGV",
    "abort": "SIGABRT",
    "exit 0": "exit code 0",
    "kill itself": "SIGKILL",
    "memory limit": "SIGKILL",
}
"""What the dead letter of each has to name."""


@handler("spin")
def spin(data: dict[str, float], context: JobContext) -> None:
    """One call into C that keeps the GIL for as long as it takes."""
    _note("start", context)
    begun = time.monotonic()
    sum(range(2_000_000))
    sum(range(int(2_000_000 * data["seconds"] / (time.monotonic() - begun))))
    _note("end", context)


@handler("print")
def print_(data: dict[str, int], context: JobContext) -> None:
    """A flood: `bytes` on each stream, in lines of `length`; 0 is one line without end."""
    _note("start", context)
    length = data["length"]
    piece = "x" * (length or 65536) + ("\n" if length else "")
    for _ in range(max(data["bytes"] // len(piece), 1)):
        sys.stdout.write(piece)
        sys.stderr.write(piece)
    _note("end", context)


@handler("deaf")
def deaf(data: Any, job: Job, context: JobContext) -> None:
    """Ignores every wish to stop."""
    _note("start", context)
    while True:
        try:
            time.sleep(1)
        except BaseException:  # noqa: BLE001 - a job that misbehaves
            continue


@handler("echo")
async def echo(data: Any, context: JobContext) -> Any:
    """Gives its data back, and prints it."""
    _note("start", context)
    sys.stdout.write(f"{data}\n")
    _note("end", context)
    return data


@handler("complain")
async def complain(data: Any, context: JobContext) -> None:
    """Fails with its data as words."""
    _note("start", context)
    _note("end", context)
    raise ValueError(data["text"])
