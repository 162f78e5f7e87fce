#!/usr/bin/env python3
"""What one no-op job costs by the way Python dispatches it, in µs; no database. Why a worker leaves some ways alone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

JOBS = 20_000
ROUNDS = 5
CHUNK = 100
AT_ONCE = 500
PAYLOAD = '{"type": "noop", "data": {"n": 1, "to": "a@example.org"}}'


def noop(_: int) -> None:
    return None


async def anoop(_: int) -> None:
    return None


@dataclass(slots=True)
class Job:
    id: int
    type: str
    data: dict


def plain_calls() -> None:
    for number in range(JOBS):
        noop(number)


def dataclasses() -> None:
    data: dict = {}
    for number in range(JOBS):
        Job(number, "noop", data)


def json_loads() -> None:
    for _ in range(JOBS):
        json.loads(PAYLOAD)


def two_clock_reads() -> None:
    for _ in range(JOBS):
        time.monotonic()
        time.monotonic()


def context_copies() -> None:
    for number in range(JOBS):
        contextvars.copy_context().run(noop, number)


def log_calls_switched_off() -> None:
    logger = logging.getLogger("off")
    logger.setLevel(logging.ERROR)
    for number in range(JOBS):
        logger.info(f"job {number} started")  # noqa: G004 - what is measured


def awaited_coroutines() -> None:
    async def run() -> None:
        for number in range(JOBS):
            await anoop(number)

    asyncio.run(run())


def awaited_with_a_timeout() -> None:
    async def run() -> None:
        for number in range(JOBS):
            async with asyncio.timeout(60):
                await anoop(number)

    asyncio.run(run())


def tasks() -> None:
    async def run() -> None:
        for first in range(0, JOBS, AT_ONCE):
            await asyncio.gather(*[asyncio.create_task(anoop(number)) for number in range(first, first + AT_ONCE)])

    asyncio.run(run())


def threads_by_to_thread() -> None:
    async def run() -> None:
        for first in range(0, JOBS, AT_ONCE):
            await asyncio.gather(*[asyncio.to_thread(noop, number) for number in range(first, first + AT_ONCE)])

    asyncio.run(run())


def threads_by_chunks() -> None:
    def chunk(first: int) -> None:
        for number in range(first, first + CHUNK):
            noop(number)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(chunk, range(0, JOBS, CHUNK)))


WAYS: dict[str, Callable[[], None]] = {
    "plain call": plain_calls,
    "dataclass with slots": dataclasses,
    "json.loads of the payload": json_loads,
    "two reads of the clock": two_clock_reads,
    "copy_context().run": context_copies,
    "log call with an f-string, switched off": log_calls_switched_off,
    "await of a coroutine": awaited_coroutines,
    "await inside asyncio.timeout": awaited_with_a_timeout,
    f"task a job, {AT_ONCE} at once": tasks,
    "asyncio.to_thread a job": threads_by_to_thread,
    f"thread pool, {CHUNK} jobs a call": threads_by_chunks,
}


def main() -> None:
    print(f"Python {sys.version.split()[0]}, µs a job: median of {ROUNDS} rounds")
    for name, way in WAYS.items():
        seconds = []
        for _ in range(ROUNDS):
            started_at = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - started_at)
        print(f"{name}\t{statistics.median(seconds) / JOBS * 1e6:.2f}")


if __name__ == "__main__":
    main()
