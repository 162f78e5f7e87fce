"""Working a queue off inside a test leaves the rows that a worker would leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, Connection
from psycopg.rows import DictRow, dict_row
from pydantic import BaseModel

from pgq_core import Job, JobContext, Registry, Snooze
from pgq_core.handlers import NextCall, Resources
from pgq_core.testing import AsyncQueueUnderTest, DrainedTooLong, QueueUnderTest


@pytest.fixture
def conn(module_dsn: str) -> Iterator[Connection[DictRow]]:
    with psycopg.connect(module_dsn, autocommit=True, row_factory=dict_row) as conn:
        yield conn


def test_due_jobs_run_in_order_until_nothing_is_left(queue: QueueUnderTest, registry: Registry) -> None:
    ran: list[str] = []

    @registry.handler("step")
    def step(data: dict[str, str]) -> str:
        ran.append(data["name"])
        if data["name"] == "urgent":
            queue.enqueue("step", {"name": "from a handler"})
        return data["name"]

    queue.enqueue("step", {"name": "plain"})
    queue.enqueue("step", {"name": "urgent"}, priority=5)
    queue.enqueue("step", {"name": "later"}, delay=60)
    queue.enqueue("unknown")

    runs = queue.drain()

    assert ran == ["urgent", "plain", "from a handler"]
    assert [(run.outcome, run.result) for run in runs] == [("succeeded", name) for name in ran]
    assert [job.type for job in queue.enqueued()] == ["step", "unknown"]


def test_a_run_leaves_its_row_and_its_job_is_gone(
    queue: QueueUnderTest, registry: Registry, conn: Connection[DictRow]
) -> None:
    @registry.handler("add")
    async def add(data: dict[str, int]) -> dict[str, int]:
        return {"sum": data["a"] + data["b"]}

    job = queue.enqueue("add", {"a": 1, "b": 2})

    queue.drain()

    assert queue.result(job.id, timeout=60) == {"sum": 3}
    (run,) = conn.execute("SELECT outcome, attempt, result FROM job_runs").fetchall()
    assert run == {"outcome": "succeeded", "attempt": 1, "result": {"sum": 3}}


def test_every_attempt_is_decided_as_a_worker_would(
    queue: QueueUnderTest, registry: Registry, conn: Connection[DictRow]
) -> None:
    @registry.handler("fails", max_attempts=3, backoff_base=10)
    def fails(data: Any) -> None:
        raise ValueError("always")

    queue.enqueue("fails")

    delays = []
    for _ in range(3):
        (run,) = queue.drain()
        delays.append(run.retry_in)
        queue.travel(run.retry_in or 0)

    assert delays == [20.0, 40.0, None]
    assert queue.enqueued() == []
    (letter,) = conn.execute("SELECT reason, attempts, last_error FROM dead_letter_jobs").fetchall()
    assert letter == {"reason": "exhausted", "attempts": 3, "last_error": "ValueError: always"}


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_jitter_is_a_fixed_share_of_the_delay(queue: QueueUnderTest, registry: Registry, share: float) -> None:
    @registry.handler("fails", backoff_base=10, max_attempts=2)
    def fails(data: Any) -> None:
        raise ValueError("always")

    queue.jitter = share
    queue.enqueue("fails")

    assert queue.drain()[0].retry_in == 20.0 * share


def test_wishes_models_and_limits_are_obeyed(queue: QueueUnderTest, registry: Registry) -> None:
    class Invoice(BaseModel):
        total: int

    @registry.handler("snoozes")
    def snoozes(data: Any) -> None:
        raise Snooze(60)

    @registry.handler("bill", model=Invoice)
    def bill(invoice: Invoice) -> int:
        return invoice.total

    @registry.handler("slow", timeout=0.05, max_attempts=1)
    async def slow(data: Any) -> None:
        await asyncio.sleep(60)

    queue.enqueue("snoozes")
    queue.enqueue("bill", Invoice(total=7))
    queue.enqueue("slow")

    assert [(run.outcome, run.result) for run in queue.drain()] == [("snoozed", None), ("succeeded", 7), ("dead", None)]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_transactional_handler_commits_with_its_completion_or_not_at_all(
    queue: QueueUnderTest, registry: Registry, conn: Connection[DictRow], is_async: bool
) -> None:
    conn.execute("CREATE TABLE IF NOT EXISTS public.effects (job_id bigint)")
    conn.execute("TRUNCATE public.effects")

    async def work_async(data: Any, job: Job, conn: AsyncConnection[Any]) -> None:
        await conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))
        if job.attempt == 1:
            raise ValueError("undone")

    def work(data: Any, job: Job, conn: Connection[Any]) -> None:
        conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))
        if job.attempt == 1:
            raise ValueError("undone")

    registry.handler("work", transactional=True)(work_async if is_async else work)
    job = queue.enqueue("work")

    assert [run.outcome for run in queue.drain()] == ["retried"]
    assert conn.execute("SELECT * FROM public.effects").fetchall() == []
    queue.travel(3600)
    assert [run.outcome for run in queue.drain()] == ["succeeded"]
    assert conn.execute("SELECT * FROM public.effects").fetchall() == [{"job_id": job.id}]


def test_plain_handlers_run_in_the_tests_own_thread_with_resources_and_middleware(
    module_dsn: str, registry: Registry
) -> None:
    seen: list[Any] = []

    @registry.on_startup
    async def open_client(resources: Resources) -> None:
        resources["client"] = "open"

    @registry.on_shutdown
    def close_client(resources: Resources) -> None:
        seen.append("closed")

    @registry.handler("look")
    def look(data: Any, context: JobContext) -> None:
        seen.extend([threading.current_thread().name, context.resources["client"]])

    with QueueUnderTest(module_dsn, schema="pgq_core", registry=registry) as queue:
        queue.enqueue(look)
        queue.drain(raise_errors=True)

        @registry.middleware
        async def around(job: Job, call_next: NextCall) -> Any:
            seen.append(f"around {job.type}")
            return await call_next()

        queue.enqueue(look)
        queue.drain(raise_errors=True)

    assert seen[:3] == ["MainThread", "open", "around look"]
    assert seen[-2:] == ["open", "closed"]


def test_given_resources_replace_the_startup_hooks(module_dsn: str, registry: Registry) -> None:
    @registry.on_startup
    def never(resources: Resources) -> None:
        raise AssertionError("not with fakes")

    @registry.handler("look")
    def look(data: Any, context: JobContext) -> Any:
        return context.resources["client"]

    with QueueUnderTest(module_dsn, schema="pgq_core", registry=registry, resources={"client": "fake"}) as queue:
        queue.enqueue(look)

        assert queue.drain()[0].result == "fake"


def test_jobs_that_enqueue_each_other_without_end_are_named(queue: QueueUnderTest, registry: Registry) -> None:
    @registry.handler("again")
    def again(data: Any) -> None:
        queue.enqueue("again")

    queue.enqueue("again")

    with pytest.raises(DrainedTooLong, match="'again'"):
        queue.drain(limit=5)


def test_only_the_named_queue_is_drained(queue: QueueUnderTest, registry: Registry) -> None:
    @registry.handler("work")
    def work(data: Any) -> None: ...

    queue.enqueue("work", queue="a")
    queue.enqueue("work", queue="b")

    assert [run.job.queue for run in queue.drain("b")] == ["b"]
    queue.assert_enqueued("work", queue="a", count=1)


def test_inline_an_enqueue_has_run_when_it_returns(queue: QueueUnderTest, registry: Registry) -> None:
    ran: list[int] = []

    @registry.handler("work")
    def work(data: dict[str, int]) -> None:
        ran.append(data["n"])
        if data["n"] < 0:
            raise ValueError("negative")

    with queue.run_inline():
        queue.enqueue("work", {"n": 1})
        assert ran == [1]
        queue.enqueue_many([("work", {"n": 2}), ("work", {"n": 3})])
        assert ran == [1, 2, 3]
        with pytest.raises(ValueError, match="negative"):
            queue.enqueue("work", {"n": -1})
    with queue.run_inline(raise_errors=False):
        queue.enqueue("work", {"n": -2})
    queue.enqueue("work", {"n": 4})

    assert ran == [1, 2, 3, -1, -2]
    assert [job.attempts for job in queue.enqueued()] == [1, 1, 0]


async def test_the_asynchronous_queue_runs_coroutines_in_the_tests_loop(
    async_queue: AsyncQueueUnderTest, registry: Registry
) -> None:
    loops: list[object] = []

    @registry.handler("work")
    async def work(data: Any) -> str:
        loops.append(asyncio.get_running_loop())
        return "done"

    @registry.handler("plain")
    def plain(data: Any) -> str:
        return asyncio.run(asyncio.sleep(0, "in a thread"))

    await async_queue.enqueue("work")
    await async_queue.enqueue("plain")
    assert [run.result for run in await async_queue.drain()] == ["done", "in a thread"]
    with async_queue.run_inline():
        await async_queue.enqueue("work")
        await async_queue.enqueue_many([("work", None)])

    assert loops == [asyncio.get_running_loop()] * 3


async def test_a_plain_queue_inside_a_running_loop_uses_another_one(queue: QueueUnderTest, registry: Registry) -> None:
    @registry.handler("work")
    async def work(data: Any) -> bool:
        return asyncio.get_running_loop() is not here

    here = asyncio.get_running_loop()
    queue.enqueue("work")

    assert [run.result for run in queue.drain()] == [True]


def test_time_passes_for_due_times_leases_and_keys(
    queue: QueueUnderTest, registry: Registry, conn: Connection[DictRow]
) -> None:
    @registry.handler("work")
    def work(data: Any) -> None: ...

    queue.enqueue("work", idempotency_key="once")
    queue.drain()
    queue.enqueue("other", delay=timedelta(hours=30))
    queue.enqueue("held")
    (held,) = queue.claim(job_types=["held"])

    assert queue.enqueue("work", idempotency_key="once").created is False
    queue.travel(timedelta(hours=25))

    assert queue.enqueue("work", idempotency_key="once").created is True
    assert [job.status for job in queue.enqueued("other")] == ["scheduled"]
    assert conn.execute("SELECT lease_until < now() AS over FROM jobs WHERE id = %s", (held.id,)).fetchall() == [
        {"over": True}
    ]
    queue.travel(timedelta(hours=5))
    assert [job.status for job in queue.enqueued("other")] == ["pending"]
    with pytest.raises(ValueError, match="forward"):
        queue.travel(-1)


def test_nothing_is_left_for_the_next_test(queue: QueueUnderTest, conn: Connection[DictRow]) -> None:
    queue.enqueue("a", idempotency_key="k")
    conn.execute("SELECT pause('default')")

    queue.empty()

    assert queue.enqueued() == []
    assert queue.enqueue("a", {"other": True}, idempotency_key="k").created
    assert queue.claim() != []
