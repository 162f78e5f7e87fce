"""What a queue writes down: every run, failures only, or a sample of its successes. Statistics count all of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.domain.job import Job
from pgq_core.domain.outcome import Cancel, Discard, NonRetryable, Retry, Snooze
from pgq_core.handlers import Registry
from tests.support.corridors import running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

PLAIN = ("coroutine", "function", "transactional")
STORIES = {
    "answers": ["succeeded"],
    "fails_once": ["retried", "succeeded"],
    "snoozes_once": ["snoozed", "succeeded"],
    "dies": ["dead"],
    "cancels": ["cancelled"],
    "discards": ["discarded"],
    "replayed": ["succeeded"],
}
"""What stands in job_runs whatever the queue keeps."""


KINDS = Registry()
"""Handlers named for what they do."""
NUMBERS = itertools.count()
SNOOZED: set[int] = set()


@KINDS.handler("coroutine")
async def coroutine(data: Any) -> None: ...


@KINDS.handler("function")
def function(data: Any) -> None: ...


@KINDS.handler("transactional", transactional=True)
async def transactional(data: Any, conn: AsyncConnection[Any]) -> None:
    await conn.execute("INSERT INTO public.effects (job_id) VALUES (1)")


@KINDS.handler("answers")
async def answers(data: Any) -> dict[str, int]:
    return {"sum": 3}


@KINDS.handler("fails_once")
async def fails_once(data: Any, job: Job) -> None:
    if job.attempts == 0:
        raise Retry("not yet", delay=0)


@KINDS.handler("snoozes_once")
async def snoozes_once(data: int) -> None:
    if data not in SNOOZED:
        SNOOZED.add(data)
        raise Snooze(0)


@KINDS.handler("dies")
async def dies(data: Any) -> None:
    raise NonRetryable("can never work")


@KINDS.handler("cancels")
async def cancels(data: Any) -> Cancel:
    return Cancel("as asked")


@KINDS.handler("discards")
async def discards(data: Any) -> Discard:
    return Discard("no longer wanted")


@KINDS.handler("replayed")
async def replayed(data: Any) -> None: ...


async def worked_off(database: QueueDatabase) -> dict[str, int]:
    """One job of each kind, all ended; answers their ids."""
    jobs = {kind: database.put(kind, next(NUMBERS)) for kind in (*PLAIN, *STORIES) if kind != "replayed"}
    letter = database.value(
        "INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts) "
        "VALUES (0, 'default', '{\"type\": \"replayed\"}', 'broken', 1) RETURNING id"
    )
    jobs["replayed"] = database.value("SELECT replay(%s)", letter)
    async with running_corridor(database.dsn, KINDS):
        await eventually_async(lambda: not database.all("SELECT FROM jobs"))
    return jobs


COUNTED = {"succeeded": 7, "retried": 1, "snoozed": 1, "dead": 1, "cancelled": 1, "discarded": 1}


@pytest.mark.parametrize(
    ("audit", "share", "plain"),
    [("all", 0.5, ["succeeded"]), ("failures", 0.5, []), ("sample", 1, ["succeeded"]), ("sample", 1e-12, [])],
)
async def test_only_plain_successes_are_ever_left_out(
    shared: QueueDatabase, audit: str, share: float, plain: list[str]
) -> None:
    shared.run("INSERT INTO queues (name, audit, audit_sample) VALUES ('default', %s, %s)", audit, share)

    jobs = await worked_off(shared)

    found = {kind: shared.outcomes(job_id) for kind, job_id in jobs.items()}
    assert found == STORIES | dict.fromkeys(PLAIN, plain)
    columns = ", ".join(f"sum({outcome})::int AS {outcome}" for outcome in COUNTED)
    assert shared.one(f"SELECT {columns} FROM job_stats") == COUNTED
    cells = "sum((SELECT sum(cell) FROM unnest(durations) AS cell))::int"
    assert shared.value(f"SELECT {cells} FROM job_stats") == sum(COUNTED.values())
    assert shared.value("SELECT count(*) FROM public.effects") == 1


async def test_sample_is_chosen_by_the_id_of_the_job(shared: QueueDatabase) -> None:
    shared.run("INSERT INTO queues (name, audit, audit_sample) VALUES ('default', 'sample', 0.2)")
    jobs = [shared.put("coroutine") for _ in range(200)]

    async with running_corridor(shared.dsn, KINDS, concurrency=50):
        await eventually_async(lambda: not shared.all("SELECT FROM jobs"))

    chosen = shared.all(
        "SELECT id AS job_id FROM unnest(%s::bigint[]) AS id "
        "WHERE hashint8(id) < 0.2 * 4294967296 - 2147483648 ORDER BY id",
        jobs,
    )
    assert shared.all("SELECT job_id FROM job_runs ORDER BY job_id") == chosen
    assert 0 < len(chosen) < 100
    assert shared.value("SELECT sum(succeeded)::int FROM job_stats") == 200


async def test_setting_holds_for_what_ends_from_then_on_under_working_workers(shared: QueueDatabase) -> None:
    async with running_corridor(shared.dsn, KINDS):
        for audit, expected in (("all", ["succeeded"]), ("failures", []), ("all", ["succeeded"])):
            shared.run(
                "INSERT INTO queues (name, audit) VALUES ('default', %s) ON CONFLICT (name) DO UPDATE SET audit = %s",
                audit,
                audit,
            )
            job_id = shared.put("coroutine")
            await eventually_async(lambda job_id=job_id: shared.job(job_id) is None)
            assert shared.outcomes(job_id) == expected
