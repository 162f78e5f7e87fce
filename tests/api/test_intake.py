"""Jobs of many requests share statements, and never each other's troubles."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from pgq_core.api.connections import Connections
from pgq_core.api.intake import Intake
from pgq_core.api.patience import Patience
from pgq_core.errors import DatabaseUnavailable, InvalidPayload, KeyConflict
from pgq_core.job_queue import AsyncJobQueue, EnqueuedJob, JobRequest


class SlowQueue:
    """Answers when it is let; data is the id of the job, or an error to be raised."""

    def __init__(self) -> None:
        self.statements: list[list[object]] = []
        self.goes_on = asyncio.Event()

    async def enqueue(self, job_type: str, data: Any, **_: object) -> EnqueuedJob:
        return (await self._stored([data]))[0]

    async def enqueue_many(self, requests: Sequence[JobRequest], *, conn: object) -> list[EnqueuedJob]:
        return await self._stored([request.data for request in requests])

    async def _stored(self, data: list[Any]) -> list[EnqueuedJob]:
        self.statements.append(data)
        await self.goes_on.wait()
        for one in data:
            if isinstance(one, Exception):
                raise one
        return [EnqueuedJob(one, created=True) for one in data]


class AnyConnection:
    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[None]:
        yield


def intake_on(queue: SlowQueue, *, patience: float = 30.0) -> Intake:
    return Intake(cast(AsyncJobQueue, queue), cast(Connections, AnyConnection()), Patience(patience))


async def asked(intake: Intake, *data: object, key: str | None = None) -> list[asyncio.Task[EnqueuedJob]]:
    tasks = [asyncio.create_task(intake.add(JobRequest("a", one, idempotency_key=key), size=100)) for one in data]
    for _ in range(20):
        await asyncio.sleep(0)
    return tasks


async def busy(intake: Intake) -> None:
    """Every lane has a statement under way."""
    for number in (101, 102, 103):
        await asked(intake, number)


async def test_a_lone_request_goes_at_once_and_a_crowd_shares_statements() -> None:
    queue = SlowQueue()
    intake = intake_on(queue)
    await busy(intake)
    assert queue.statements == [[101], [102], [103]]
    tasks = await asked(intake, *range(150))
    assert len(queue.statements) == 3

    queue.goes_on.set()
    answers = await asyncio.gather(*tasks)

    assert [answer.id for answer in answers] == list(range(150))
    assert [len(statement) for statement in queue.statements[3:]] == [100, 50]


async def test_one_that_cannot_be_stored_keeps_no_other_from_it() -> None:
    queue = SlowQueue()
    tasks = await asked(intake_on(queue), 1, 2, 3, 4, InvalidPayload("no"), 6)

    queue.goes_on.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [answer.id for answer in answers if isinstance(answer, EnqueuedJob)] == [1, 2, 3, 4, 6]
    assert isinstance(answers[4], InvalidPayload)


async def test_what_may_have_been_stored_is_not_sent_again() -> None:
    queue = SlowQueue()
    tasks = await asked(intake_on(queue), 1, DatabaseUnavailable("gone"), 3)

    queue.goes_on.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in answers] == [DatabaseUnavailable] * 3
    assert len(queue.statements) == 1


async def test_a_database_that_falls_silent_gives_the_lanes_free() -> None:
    queue = SlowQueue()
    intake = intake_on(queue, patience=0.05)
    answers = await asyncio.gather(*await asked(intake, *range(10)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {DatabaseUnavailable}

    queue.goes_on.set()

    assert (await intake.add(JobRequest("a", 7), size=1)).id == 7


async def test_who_has_given_up_is_not_stored_later() -> None:
    queue = SlowQueue()
    intake = intake_on(queue)
    await busy(intake)
    tasks = await asked(intake, 1, 2, 3)
    tasks[1].cancel()

    queue.goes_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert queue.statements[3:] == [[1, 3]]


async def test_a_job_with_a_key_waits_for_nobody() -> None:
    queue = SlowQueue()
    intake = intake_on(queue)
    await busy(intake)

    keyed = await asked(intake, 9, key="k")
    assert queue.statements[-1] == [9]
    queue.goes_on.set()

    assert (await keyed[0]).id == 9


async def test_a_conflict_of_keys_is_raised_as_it_is() -> None:
    queue = SlowQueue()
    queue.goes_on.set()

    with pytest.raises(KeyConflict):
        await intake_on(queue).add(JobRequest("a", KeyConflict("k", 1), idempotency_key="k"), size=1)
