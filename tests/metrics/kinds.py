"""Handlers that end in every way a handler can end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from pgq_core import Cancel, Discard, Job, NonRetryable, Snooze, handler


@handler("good")
async def good(data: dict[str, int]) -> None: ...


@handler("bad", max_attempts=3, backoff_base=0.05, backoff_cap=0.3)
async def bad(data: dict[str, int]) -> None:
    raise ValueError(f"bad number {data['n']}")


@handler("hopeless")
async def hopeless(data: dict[str, int]) -> None:
    raise NonRetryable("never")


@handler("sleepy")
async def sleepy(data: dict[str, int], job: Job) -> None:
    if job.created_at is None or datetime.now(UTC) - job.created_at < timedelta(seconds=1):
        raise Snooze(1.0)


@handler("unwanted")
async def unwanted(data: dict[str, int]) -> None:
    raise Discard


@handler("given up")
async def given_up(data: dict[str, int]) -> None:
    raise Cancel


@handler("slow")
async def slow(data: dict[str, int]) -> None:
    await asyncio.sleep(0.2)


@handler("long")
async def long(data: dict[str, int]) -> None:
    """So long that a worker may be stopped in the middle of it."""
    await asyncio.sleep(2.0)
