"""Large data is not claimed along with that of hundreds of other jobs, but fetched when its job has a slot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pgq_core import Job
from pgq_core.handlers import Registry
from pgq_core.queries.claims import LEFT_BEHIND, ClaimedRow
from pgq_core.worker.writer import Writer
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually_async

LARGE = "x" * 1_000_000
RANDOM = "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 2000) AS n"


@pytest.fixture
def seen() -> list[tuple[int, Any]]:
    return []


@pytest.fixture
def registry(seen: list[tuple[int, Any]]) -> Registry:
    registry = Registry()

    @registry.handler("coroutine")
    async def coroutine(data: Any, job: Job) -> None:
        seen.append((job.id, data))

    @registry.handler("thread")
    def thread(data: Any, job: Job) -> None:
        seen.append((job.id, data))

    @registry.handler("own", transactional=True)
    async def own(data: Any, job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
        seen.append((job.id, data))

    return registry


@pytest.mark.parametrize("job_type", ["coroutine", "thread", "own"])
@pytest.mark.parametrize("text", [lambda _: LARGE, lambda database: database.value(RANDOM)], ids=["dense", "random"])
async def test_a_handler_gets_large_data_whole(
    database: QueueDatabase,
    registry: Registry,
    seen: list[tuple[int, Any]],
    job_type: str,
    text: Callable[[QueueDatabase], str],
) -> None:
    data = {"text": text(database), "number": 10**30}
    large, small = database.put(job_type, data), database.put(job_type, {"text": "small"})

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(large) and database.runs(small))

    assert dict(seen) == {large: data, small: {"text": "small"}}
    assert database.all(FAULTS) == []


async def test_large_data_lies_in_no_hands_but_those_of_running_jobs(
    database: QueueDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that were quick so far let a worker claim hundreds ahead."""
    gate, registry, held, fetch = asyncio.Event(), Registry(), set[int](), Writer.with_data

    @registry.handler("quick")
    async def quick(data: Any) -> None: ...

    @registry.handler("large")
    async def large(data: Any, job: Job) -> None:
        await gate.wait()
        held.discard(job.id)

    async def counted(self: Writer, row: ClaimedRow) -> ClaimedRow | None:
        held.add(row.id)
        return await fetch(self, row)

    monkeypatch.setattr(Writer, "with_data", counted)
    database.run('INSERT INTO jobs (payload) SELECT \'{"type": "quick"}\' FROM generate_series(1, 2000)')
    database.run(
        "INSERT INTO jobs (payload) SELECT jsonb_build_object('type', 'large', 'data', %s::text) "
        "FROM generate_series(1, 100)",
        LARGE,
    )

    async with running_corridor(database.dsn, registry, concurrency=4) as running:
        await eventually_async(lambda: len(held) == 4)
        assert {row.data for row in running.corridor.executor.ready} <= {LEFT_BEHIND}
        gate.set()
        await eventually_async(lambda: not database.all("SELECT FROM jobs LIMIT 1"), timeout=60)

    assert database.value("SELECT count(*) FROM job_runs WHERE success") == 2100
    assert database.value("SELECT count(*) FROM job_runs WHERE NOT success") == 0


async def test_a_job_whose_data_does_not_come_goes_back_unspent(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, failures = Writer.with_data, iter([psycopg.OperationalError("away"), None])

    async def failing(self: Writer, row: ClaimedRow) -> ClaimedRow | None:
        if (error := next(failures, None)) is not None:
            raise error
        return await fetch(self, row)

    monkeypatch.setattr(Writer, "with_data", failing)
    job_id = database.put("coroutine", {"text": LARGE})

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.outcomes(job_id) == ["released", "succeeded"])

    assert database.value("SELECT max(attempt) FROM job_runs") == 1


async def test_data_that_cannot_be_read_is_a_failure_of_its_job(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged row, say: it would go back and be claimed again without end."""

    async def damaged(self: Writer, row: ClaimedRow) -> ClaimedRow | None:
        raise psycopg.errors.DataCorrupted("missing chunk number 0 for toast value")

    monkeypatch.setattr(Writer, "with_data", damaged)
    job_id = database.put("coroutine", {"text": LARGE}, max_attempts=1)

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id))

    assert "missing chunk" in letter["last_error"]


async def test_a_worker_that_stops_hands_back_what_waits_for_its_data(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def hanging(self: Writer, row: ClaimedRow) -> ClaimedRow | None:
        asked.set()
        await never.wait()
        return None

    monkeypatch.setattr(Writer, "with_data", hanging)
    job_id = database.put("coroutine", {"text": LARGE})

    async with running_corridor(database.dsn, registry):
        await asyncio.wait_for(asked.wait(), 30)

    job = database.job(job_id) or {}
    assert (job["status"], job["attempts"]) == ("pending", 0)
    never.set()
