"""A runner whose keeper is gone beats for itself; it leaves its jobs alone as soon as others may have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from pgq_core.handlers import Registry
from pgq_core.queries import Queries
from pgq_core.worker.orphan import OrphanBeats
from tests.support.corridors import WORKER_ID, RunningCorridor, running_corridor
from tests.support.queue_database import QueueDatabase


@pytest.fixture
async def running(database: QueueDatabase) -> AsyncIterator[RunningCorridor]:
    async with running_corridor(database.dsn, Registry()) as running:
        yield running


def beats_of(running: RunningCorridor, lost: asyncio.Event) -> OrphanBeats:
    return OrphanBeats(
        running.corridor.writer, Queries("pgq_core"), running.marks, worker_id=WORKER_ID, interval=1.0, on_lost=lost.set
    )


@pytest.mark.parametrize("end", ["DELETE FROM workers", "UPDATE workers SET state = 'lost', stopped_at = now()"])
async def test_a_runner_whose_row_is_gone_or_ended_counts_as_lost(
    database: QueueDatabase, running: RunningCorridor, end: str
) -> None:
    lost = asyncio.Event()
    beats = beats_of(running, lost)
    await beats.run_once()
    assert not lost.is_set()
    beaten = running.marks.last_beat_ns
    database.run(end)

    await beats.run_once()

    assert lost.is_set()
    assert running.marks.last_beat_ns == beaten


async def test_a_beat_that_met_a_lock_is_none(
    database: QueueDatabase, running: RunningCorridor, stranger: psycopg.Connection
) -> None:
    """It may not speak of a heartbeat that the others do not see."""
    lost, beaten = asyncio.Event(), running.marks.last_beat_ns
    stranger.execute("SELECT FROM workers FOR UPDATE")

    await beats_of(running, lost).run_once()

    assert not lost.is_set()
    assert running.marks.last_beat_ns == beaten
