"""Claimed, run, written: what a handler's behaviour becomes in the tables."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from pgq_core.domain.job import Job
from pgq_core.domain.outcome import Cancel, Discard, HandlerWish, NonRetryable, Retry, Snooze
from pgq_core.handlers import Registry
from pgq_core.handlers.registry import NextCall
from pgq_core.queries import Queries
from pgq_core.queries.claims import in_claim_order
from pgq_core.worker import producer
from pgq_core.worker.clock import machine_ns
from pgq_core.worker.context import JobContext
from pgq_core.worker.marks import Turn
from tests.support.corridors import WORKER_ID, running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def database(shared: QueueDatabase) -> QueueDatabase:
    return shared


async def test_result_of_a_coroutine_is_kept_with_its_run(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("add")
    async def add(data: dict[str, int]) -> dict[str, int]:
        return {"sum": data["a"] + data["b"]}

    job_id = database.put("add", {"a": 1, "b": 2}, priority=7)

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id))

    (run,) = database.runs(job_id)
    assert (run["outcome"], run["success"], run["attempt"], run["result"]) == ("succeeded", True, 1, {"sum": 3})
    assert (run["queue"], run["job_type"], run["priority"], run["worker_id"]) == ("default", "add", 7, "test-worker-1")
    assert run["started_at"] <= run["finished_at"]
    assert database.job(job_id) is None


async def test_plain_function_runs_in_a_thread_with_what_it_asks_for(
    database: QueueDatabase, registry: Registry
) -> None:
    seen: list[Any] = []

    @registry.handler("look")
    def look(data: Any, job: Job, context: JobContext) -> None:
        seen.extend([data, job.id, context.resources, context.cancelled.is_set(), threading.current_thread().name])

    job_id = database.put("look", [1, 2])

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id))

    assert seen[:4] == [[1, 2], job_id, {"name": "resource"}, False]
    assert seen[4].startswith("pgq-job-")


WISHES: list[tuple[HandlerWish, str, str | None, int]] = [
    (Retry("later please", delay=3600), "retried", "scheduled", 1),
    (Snooze(3600, reason="not yet"), "snoozed", "scheduled", 0),
    (Snooze(until=datetime.now(UTC) + timedelta(hours=1)), "snoozed", "scheduled", 0),
    (Snooze(1e18 / 1e9 * 80), "snoozed", "scheduled", 0),
    (Snooze(0), "snoozed", "scheduled", 0),
    (Snooze(-5), "snoozed", "scheduled", 0),
    (Snooze(until=datetime(2001, 1, 1, tzinfo=UTC)), "snoozed", "scheduled", 0),
    (Discard("no longer wanted"), "discarded", None, 0),
    (Cancel("as asked"), "cancelled", None, 0),
    (NonRetryable("can never work"), "dead", None, 0),
]


@pytest.mark.parametrize("is_raised", [True, False], ids=["raised", "returned"])
@pytest.mark.parametrize(("wish", "outcome", "status", "attempts"), WISHES)
async def test_wish_of_a_handler_is_carried_out(
    database: QueueDatabase,
    registry: Registry,
    *,
    wish: HandlerWish,
    outcome: str,
    status: str | None,
    attempts: int,
    is_raised: bool,
) -> None:
    @registry.handler("wish")
    async def wishes(data: Any) -> HandlerWish:
        if is_raised:
            raise wish
        return wish

    job_id = database.put("wish")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id))

    assert database.outcomes(job_id) == [outcome]
    job, letter = database.job(job_id), database.letter(job_id)
    assert (job and (job["status"], job["attempts"])) == (status and (status, attempts))
    assert (letter and letter["reason"]) == ("non_retryable" if outcome == "dead" else None)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, RecursionError])
@pytest.mark.parametrize("is_async", [True, False], ids=["coroutine", "plain"])
async def test_whatever_a_handler_raises_fails_that_job_alone(
    database: QueueDatabase, registry: Registry, kind: type[BaseException], is_async: bool
) -> None:
    if is_async:

        @registry.handler("raise")
        async def raise_async(data: Any) -> None:
            await asyncio.sleep(0)
            raise kind("on purpose")
    else:

        @registry.handler("raise")
        def raise_plain(data: Any) -> None:
            raise kind("on purpose")

    @registry.handler("fine")
    async def fine(data: Any) -> None:
        pass

    failing, healthy = database.put("raise", max_attempts=1), database.put("fine")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.letter(failing) and database.runs(healthy))
        later = database.put("fine")
        await eventually_async(lambda: database.runs(later))

    letter = database.letter(failing)
    assert letter is not None
    assert letter["last_error"] == f"{kind.__name__}: on purpose"
    assert database.outcomes(healthy) == ["succeeded"]


async def test_data_that_does_not_fit_the_model_is_malformed_at_once(
    database: QueueDatabase, registry: Registry
) -> None:
    class Invoice(BaseModel):
        customer: int

    @registry.handler("bill", model=Invoice)
    async def bill(invoice: Invoice) -> None:
        pass

    job_id = database.put("bill", {"customer": "nobody"})

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id))

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("malformed", 1)
    assert "data.customer" in letter["last_error"]


async def test_payload_that_python_cannot_read_harms_only_itself(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("fine")
    async def fine(data: Any) -> None:
        pass

    deep = database.value(
        "INSERT INTO jobs (payload) VALUES (%s::jsonb) RETURNING id",
        '{"type": "fine", "data": ' + "[" * 3000 + "]" * 3000 + "}",
    )
    healthy = database.put("fine")

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(deep))
        await eventually_async(lambda: database.runs(healthy))

    assert letter is not None
    assert letter["reason"] == "malformed"
    assert database.outcomes(healthy) == ["succeeded"]


async def test_job_without_an_attempt_left_is_buried_without_a_run(database: QueueDatabase, registry: Registry) -> None:
    ran: list[int] = []

    @registry.handler("count")
    async def count(data: Any) -> None:
        ran.append(1)

    job_id = database.put("count", attempts=3, max_attempts=3)

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id))

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("exhausted", 3)
    assert [(run["attempt"], run["outcome"]) for run in database.runs(job_id)] == [(0, "dead")]
    assert ran == []


async def test_coroutine_is_cancelled_at_its_time_limit(database: QueueDatabase, registry: Registry) -> None:
    unwound = asyncio.Event()

    @registry.handler("slow", timeout=0.1)
    async def slow(data: Any) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            unwound.set()

    job_id = database.put("slow", max_attempts=1)

    async with running_corridor(database.dsn, registry):
        letter = await eventually_async(lambda: database.letter(job_id))

    assert letter is not None
    assert (letter["reason"], letter["last_error"]) == ("timeout", "time limit of 0.1 s passed")
    assert unwound.is_set()


async def test_row_decides_the_time_limit_and_zero_means_none(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("slow", timeout=0.01)
    async def slow(data: Any) -> None:
        await asyncio.sleep(0.2)

    unlimited = database.put("slow", timeout=timedelta(0))
    longer = database.put("slow", timeout=timedelta(seconds=5))

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(unlimited) and database.runs(longer))

    assert database.outcomes(unlimited) == database.outcomes(longer) == ["succeeded"]


async def test_threaded_job_is_failed_at_its_time_limit_and_its_late_end_changes_nothing(
    database: QueueDatabase, registry: Registry
) -> None:
    release = threading.Event()
    contexts: list[JobContext] = []

    @registry.handler("slow", timeout=0.1)
    def slow(data: Any, context: JobContext) -> None:
        contexts.append(context)
        release.wait(30)

    job_id = database.put("slow", max_attempts=1)

    async with running_corridor(database.dsn, registry, concurrency=1) as running:
        letter = await eventually_async(lambda: database.letter(job_id))
        assert contexts[0].cancelled.is_set()
        assert not running.stuck

        # Its slot is free for others although the thread still runs.
        other = database.put("slow", timeout=timedelta(0))
        await eventually_async(lambda: len(contexts) == 2)
        release.set()
        await eventually_async(lambda: database.runs(other))

    assert letter is not None
    assert letter["reason"] == "timeout"
    assert database.outcomes(job_id) == ["dead"]
    assert database.outcomes(other) == ["succeeded"]


async def test_thread_that_outlives_the_grace_asks_for_another_runner(
    database: QueueDatabase, registry: Registry
) -> None:
    release = threading.Event()

    @registry.handler("slow", timeout=0.05)
    def slow(data: Any) -> None:
        release.wait(30)

    job_id = database.put("slow", max_attempts=1)

    async with running_corridor(database.dsn, registry, grace=0.1) as running:
        await eventually_async(lambda: running.stuck)
        release.set()

    assert str(job_id) in running.stuck[0]


async def test_coroutine_that_ignores_its_cancellation_is_given_up_after_the_grace(
    database: QueueDatabase, registry: Registry
) -> None:
    release = asyncio.Event()

    @registry.handler("stubborn", timeout=0.05)
    async def stubborn(data: Any) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    job_id = database.put("stubborn", max_attempts=1)

    async with running_corridor(database.dsn, registry, grace=0.1) as running:
        letter = await eventually_async(lambda: database.letter(job_id))
        await eventually_async(lambda: running.stuck)
        release.set()

    assert letter is not None
    assert letter["reason"] == "timeout"


async def test_cancelled_coroutine_ends_as_cancelled(database: QueueDatabase, registry: Registry) -> None:
    started = asyncio.Event()

    @registry.handler("wait")
    async def wait(data: Any) -> None:
        started.set()
        await asyncio.sleep(30)

    job_id = database.put("wait")

    async with running_corridor(database.dsn, registry):
        await asyncio.wait_for(started.wait(), 60)
        answer = database.value("SELECT cancel(%s)", job_id)
        await eventually_async(lambda: database.runs(job_id))

    assert answer == "requested"
    assert database.outcomes(job_id) == ["cancelled"]
    assert database.job(job_id) is None


async def test_cancelled_plain_function_sees_it_in_its_context(database: QueueDatabase, registry: Registry) -> None:
    started = threading.Event()

    @registry.handler("wait")
    def wait(data: Any, context: JobContext) -> None:
        started.set()
        assert context.cancelled.wait(30)
        raise Cancel("stopped half way")

    job_id = database.put("wait")

    async with running_corridor(database.dsn, registry):
        await eventually_async(started.is_set)
        database.run("SELECT cancel(%s)", job_id)
        await eventually_async(lambda: database.runs(job_id))

    (run,) = database.runs(job_id)
    assert (run["outcome"], run["error"]) == ("cancelled", "stopped half way")


async def test_failure_after_a_request_to_cancel_is_not_retried(database: QueueDatabase, registry: Registry) -> None:
    go = asyncio.Event()

    @registry.handler("fail")
    async def fail(data: Any) -> None:
        await go.wait()
        raise RuntimeError("failed before it saw the request")

    job_id = database.put("fail")

    async with running_corridor(database.dsn, registry, poll=5.0) as running:
        await eventually_async(lambda: running.marks.running == 1)
        # Straight into the row: the worker learns of it only when it writes.
        database.run("UPDATE jobs SET cancel_requested = true WHERE id = %s", job_id)
        go.set()
        await eventually_async(lambda: database.runs(job_id))

    assert database.outcomes(job_id) == ["cancelled"]
    assert database.job(job_id) is None


async def test_cancelled_jobs_that_wait_in_the_workers_hands_never_start(
    database: QueueDatabase, registry: Registry
) -> None:
    started: list[int] = []
    release = asyncio.Event()

    @registry.handler("job")
    async def job(data: Any, job: Job) -> None:
        started.append(job.id)
        await release.wait()

    first = database.put("job")
    others = [database.put("job") for _ in range(9)]

    async with running_corridor(database.dsn, registry, concurrency=1) as running:
        for _ in range(50):
            running.corridor.executor.pace.add([("job", 0.0001)])  # quick so far: it claims ahead
        running.corridor.producer.wake()
        await eventually_async(lambda: started == [first])
        await eventually_async(
            lambda: (
                running.corridor.executor.ready or len(database.all("SELECT FROM jobs WHERE status = 'pending'")) == 9
            )
        )
        for job_id in others:
            database.run("SELECT cancel(%s)", job_id)
        await eventually_async(lambda: all(database.job(job_id) is None for job_id in others))
        release.set()
        await eventually_async(lambda: database.runs(first))

    assert started == [first]
    assert all(database.outcomes(job_id) == ["cancelled"] for job_id in others)


async def test_jobs_stuck_behind_long_ones_are_handed_back(database: QueueDatabase, registry: Registry) -> None:
    release = asyncio.Event()

    @registry.handler("job")
    async def job(data: Any) -> None:
        await release.wait()

    for _ in range(10):
        database.put("job")

    async with running_corridor(database.dsn, registry, concurrency=2) as running:
        for _ in range(50):
            running.corridor.executor.pace.add([("job", 0.0001)])
        await eventually_async(lambda: running.marks.running == 2)
        await eventually_async(lambda: len(database.all("SELECT FROM jobs WHERE status = 'pending'")) == 8)
        release.set()
        await eventually_async(lambda: len(database.all("SELECT FROM job_runs WHERE success")) == 10)

    assert database.value("SELECT count(*) FROM job_runs") == 10


async def test_late_worker_cannot_finish_a_rescued_job(database: QueueDatabase, registry: Registry) -> None:
    go = asyncio.Event()

    @registry.handler("job")
    async def job(data: Any) -> None:
        await go.wait()

    job_id = database.put("job", max_attempts=9)

    async with running_corridor(database.dsn, registry) as running:
        await eventually_async(lambda: running.marks.running == 1)
        # Another worker has it now, under a claim of its own.
        database.run(
            "UPDATE jobs SET locked_by = 'other', claim_token = nextval('claim_token_seq') WHERE id = %s", job_id
        )
        go.set()
        await eventually_async(lambda: running.marks.late_writes == 1)

    job_row = database.job(job_id)
    assert job_row is not None
    assert (job_row["status"], job_row["locked_by"]) == ("running", "other")
    assert database.runs(job_id) == []
    assert running.marks.finished == 0


async def test_outcome_waits_for_its_partition(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    for row in database.all(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'job_runs'::regclass"
    ):
        database.run(f"DROP TABLE {row['name']}")
    job_id = database.put("job")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id))

    assert database.outcomes(job_id) == ["succeeded"]


async def test_outcome_that_the_database_refuses_is_written_in_a_plainer_form(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgq_core.worker.endings.storable_result", lambda value: (value, None))

    @registry.handler("give")
    async def give(data: Any) -> str:
        return "no JSON at all" if data == "bad" else json.dumps(data)

    bad = database.put("give", "bad")
    good = [database.put("give", {"n": n}) for n in range(5)]

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: all(database.runs(job_id) for job_id in (bad, *good)))

    (run,) = database.runs(bad)
    assert (run["outcome"], run["success"], run["result"]) == ("succeeded", True, None)
    assert run["error"].startswith("result not storable")
    assert [database.runs(job_id)[0]["result"] for job_id in good] == [{"n": n} for n in range(5)]


async def test_context_variables_of_one_job_do_not_reach_the_next(database: QueueDatabase, registry: Registry) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")
    seen: list[str] = []

    @registry.handler("async")
    async def set_async(data: Any) -> None:
        seen.append(variable.get())
        variable.set("dirty")

    @registry.handler("plain")
    def set_plain(data: Any) -> None:
        seen.append(variable.get())
        variable.set("dirty")

    jobs = [database.put(kind) for kind in ("async", "plain") for _ in range(5)]

    async with running_corridor(database.dsn, registry, concurrency=1):
        await eventually_async(lambda: all(database.runs(job_id) for job_id in jobs))

    assert seen == ["clean"] * 10


async def test_time_limit_inside_a_handler_is_the_handlers_own(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("guarded")
    async def guarded(data: Any) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(30)
        except TimeoutError:
            return "gave up"
        return "never"

    jobs = [database.put("guarded") for _ in range(3)]

    async with running_corridor(database.dsn, registry, concurrency=1):
        await eventually_async(lambda: all(database.runs(job_id) for job_id in jobs))

    assert [database.runs(job_id)[0]["result"] for job_id in jobs] == ["gave up"] * 3


async def test_middleware_goes_around_coroutines_and_plain_functions(
    database: QueueDatabase, registry: Registry
) -> None:
    seen: list[str] = []

    @registry.middleware
    async def around(job: Job, call_next: NextCall) -> Any:
        seen.append(f"before {job.type}")
        value = await call_next()
        seen.append(f"after {job.type}")
        return {"wrapped": value}

    @registry.handler("async")
    async def run_async(data: Any) -> int:
        return 1

    @registry.handler("plain")
    def run_plain(data: Any) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return 2

    first = database.put("async")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(first))
        second = database.put("plain")
        await eventually_async(lambda: database.runs(second))

    assert seen == ["before async", "after async", "before plain", "after plain"]
    assert database.runs(first)[0]["result"] == {"wrapped": 1}
    assert database.runs(second)[0]["result"] == {"wrapped": 2}


async def test_suspect_runs_alone(database: QueueDatabase, registry: Registry) -> None:
    together: list[int] = []
    running_now: set[int] = set()

    @registry.handler("job")
    async def job(data: Any, job: Job) -> None:
        running_now.add(job.id)
        together.append(len(running_now))
        await asyncio.sleep(0.05)
        running_now.discard(job.id)

    suspects = [database.put("job", suspect=True) for _ in range(3)]

    async with running_corridor(database.dsn, registry, concurrency=5):
        await eventually_async(lambda: all(database.runs(job_id) for job_id in suspects))

    assert together == [1, 1, 1]


async def test_busy_worker_runs_itself_empty_for_a_suspect(database: QueueDatabase, registry: Registry) -> None:
    alone: list[bool] = []
    running_now: set[int] = set()

    @registry.handler("job")
    async def job(data: Any, job: Job) -> None:
        running_now.add(job.id)
        if data == "suspect":
            alone.append(len(running_now) == 1)
        await asyncio.sleep(0.02)
        if data == "suspect":
            alone.append(len(running_now) == 1)
        running_now.discard(job.id)

    suspect = database.put("job", "suspect", suspect=True, priority=-5)
    for _ in range(3000):
        database.put("job")

    async with running_corridor(database.dsn, registry, concurrency=3):
        await eventually_async(lambda: database.runs(suspect))

    assert alone == [True, True]


async def test_every_queue_gets_its_turn(database: QueueDatabase, registry: Registry) -> None:
    order: list[str] = []

    @registry.handler("job")
    async def job(data: Any, job: Job) -> None:
        order.append(job.queue)
        await asyncio.sleep(0.001)

    for _ in range(200):
        database.put("job", queue="flooded")
    for _ in range(5):
        database.put("job", queue="quiet")

    async with running_corridor(database.dsn, registry, concurrency=2, queues=("flooded", "quiet")):
        await eventually_async(lambda: order.count("quiet") == 5)

    assert order.index("quiet") < 100


async def test_higher_priority_and_earlier_due_time_start_first(database: QueueDatabase, registry: Registry) -> None:
    order: list[str] = []

    @registry.handler("job")
    async def job(data: Any) -> None:
        order.append(data)

    database.put("job", "low", priority=-1)
    database.put("job", "later")
    database.put("job", "early", not_before=datetime.now(UTC) - timedelta(minutes=1))
    database.put("job", "high", priority=1)

    async with running_corridor(database.dsn, registry, concurrency=1):
        await eventually_async(lambda: len(order) == 4)

    assert order == ["high", "early", "later", "low"]


async def test_types_of_others_are_left_to_others(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("mine")
    async def mine(data: Any) -> None:
        pass

    unknown, known = database.put("theirs", priority=9), database.put("mine")

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(known))

    row = database.job(unknown)
    assert row is not None
    assert (row["status"], row["attempts"]) == ("pending", 0)


async def test_nothing_of_a_paused_queue_starts_until_it_is_resumed(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    database.run("SELECT pause('default')")
    job_id = database.put("job")
    other = database.put("job", queue="other")

    async with running_corridor(database.dsn, registry, queues=("default", "other")):
        await eventually_async(lambda: database.runs(other))
        assert database.runs(job_id) == []
        database.run("SELECT resume('default')")
        await eventually_async(lambda: database.runs(job_id))


async def test_work_of_a_transactional_handler_is_committed_with_its_completion(
    database: QueueDatabase, registry: Registry
) -> None:
    seen_inside: list[object] = []

    @registry.handler("async", transactional=True)
    async def insert_async(data: Any, job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))
        seen_inside.append(database.value("SELECT count(*) FROM effects WHERE job_id = %s", job.id))
        if data == "fail":
            raise RuntimeError("after the insert")

    @registry.handler("plain", transactional=True)
    def insert_plain(data: Any, job: Job, conn: psycopg.Connection[Any]) -> None:
        conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))

    good, plain = database.put("async"), database.put("plain")
    bad = database.put("async", "fail", max_attempts=1)

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(good) and database.runs(plain) and database.letter(bad))

    assert seen_inside[0] == 0
    rows = [row["job_id"] for row in database.all("SELECT job_id FROM effects ORDER BY 1")]
    assert rows == sorted([good, plain])


async def test_transactional_handler_that_lost_its_job_leaves_nothing_behind(
    database: QueueDatabase, registry: Registry
) -> None:
    go = asyncio.Event()

    @registry.handler("insert", transactional=True)
    async def insert(data: Any, job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))
        await go.wait()

    job_id = database.put("insert")

    async with running_corridor(database.dsn, registry) as running:
        await eventually_async(lambda: running.marks.running == 1)
        database.run(
            "UPDATE jobs SET locked_by = 'other', claim_token = nextval('claim_token_seq') WHERE id = %s", job_id
        )
        go.set()
        await eventually_async(lambda: running.marks.late_writes == 1)

    assert database.all("SELECT FROM effects") == []
    assert database.runs(job_id) == []


async def test_database_that_fails_under_a_transactional_handler_costs_no_attempt(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("insert", transactional=True)
    async def insert(data: Any, job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
        if not database.runs(job.id):
            database.run("SELECT pg_terminate_backend(%s)", conn.info.backend_pid)
        await conn.execute("INSERT INTO public.effects VALUES (%s)", (job.id,))

    job_id = database.put("insert", max_attempts=1)

    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: len(database.runs(job_id)) == 2)

    assert database.outcomes(job_id) == ["released", "succeeded"]
    assert database.value("SELECT count(*) FROM effects") == 1


async def test_short_plain_functions_share_a_thread_and_long_ones_do_not_hold_them_up(
    database: QueueDatabase, registry: Registry
) -> None:
    release = threading.Event()

    @registry.handler("job")
    def job(data: Any) -> None:
        if data == "long":
            release.wait(30)

    jobs = [database.put("job") for _ in range(100)]

    async with running_corridor(database.dsn, registry, concurrency=2):
        await eventually_async(lambda: len(database.all("SELECT FROM job_runs")) == 100)
        long = database.put("job", "long", priority=1)
        more = [database.put("job") for _ in range(100)]
        await eventually_async(lambda: all(database.runs(job_id) for job_id in more))
        assert database.runs(long) == []
        release.set()
        await eventually_async(lambda: database.runs(long))

    assert len({run["job_id"] for run in database.all("SELECT job_id FROM job_runs WHERE success")}) == 201
    assert len(jobs) == 100


async def test_job_due_soon_starts_when_it_is_due_and_not_a_poll_later(
    database: QueueDatabase, registry: Registry
) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    async with running_corridor(database.dsn, registry, poll=600.0):
        await asyncio.sleep(0.3)  # asleep until the next poll
        job_id = database.put("job", not_before=datetime.now(UTC) + timedelta(seconds=0.5))
        await eventually_async(lambda: database.runs(job_id))

    (run,) = database.runs(job_id)
    assert run["started_at"] >= run["due_at"]


async def test_claim_whose_answer_got_lost_is_handed_back(database: QueueDatabase, registry: Registry) -> None:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    database.run("SELECT pause('default')")
    lost = database.put("job")
    database.run(
        "UPDATE jobs SET locked_by = %s, locked_at = now(), status = 'running', "
        "claim_token = nextval('claim_token_seq') WHERE id = %s",
        WORKER_ID,
        lost,
    )

    async with running_corridor(database.dsn, registry) as running:
        # The connection breaks, as it did when the answer got lost.
        conn = await running.corridor.listener.connection()
        database.run("SELECT pg_terminate_backend(%s)", conn.info.backend_pid)
        running.corridor.producer._roll_call.lost_touch()  # a connection that breaks between two claims has lost none
        await eventually_async(lambda: (database.job(lost) or {})["status"] == "pending")
        database.run("SELECT resume('default')")
        await eventually_async(lambda: database.runs(lost))

    assert database.outcomes(lost) == ["succeeded"]


async def test_claims_from_before_the_last_answer_are_not_called_up(
    database: QueueDatabase, registry: Registry
) -> None:
    """They are known to have arrived, and behind a held snapshot nobody could read past all that ran before them."""

    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    def claimed_by_us(*, newer_by: int) -> int:
        job_id = database.put("elsewhere")
        database.run(
            "UPDATE jobs SET locked_by = %s, locked_at = now(), status = 'running', "
            "claim_token = (SELECT last_value + %s FROM claim_token_seq) WHERE id = %s",
            WORKER_ID,
            newer_by,
            job_id,
        )
        return job_id

    old = claimed_by_us(newer_by=0)
    async with running_corridor(database.dsn, registry) as running:
        answered = database.put("job")
        await eventually_async(lambda: database.runs(answered))
        lost = claimed_by_us(newer_by=1000)
        # As after a connection that broke in the middle of a claim; one that breaks between two has lost no answer.
        running.corridor.producer._roll_call.lost_touch()
        await eventually_async(lambda: (database.job(lost) or {})["status"] == "pending")

        # One statement hands back all that a roll call misses.
        assert (database.job(old) or {})["status"] == "running"


async def test_worker_that_others_may_take_for_dead_claims_nothing_until_its_beat_is_back(
    database: QueueDatabase, registry: Registry
) -> None:
    """As after a suspension: what it claimed before its watchdog looked would only be handed back."""

    @registry.handler("noop")
    async def noop(data: Any) -> None: ...

    async with running_corridor(database.dsn, registry, stale_limit=60) as running:
        running.marks.last_beat_ns = machine_ns() - 59 * 10**9
        job_id = database.put("noop")
        turns: set[float] = set()

        async def has_turned() -> bool:
            turns.add(running.marks._header[Turn.CLAIM])
            return len(turns) > 5

        await eventually_async(has_turned)
        row = database.job(job_id)
        assert row is not None
        assert row["status"] == "pending"
        running.marks.last_beat_ns = machine_ns()
        await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"])


async def test_only_a_turn_that_hangs_is_given_up(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "CALL_LIMIT", 0.4)

    @registry.handler("noop")
    async def noop(data: Any) -> None: ...

    async with running_corridor(database.dsn, registry, poll=0.05) as running:
        connections = set()
        until = time.monotonic() + 4 * producer.CALL_LIMIT
        while time.monotonic() < until:
            connections.add(id(await running.corridor.listener.connection()))
            await asyncio.sleep(0.05)
        first = await running.corridor.listener.connection()
        with database.connection() as other, other.transaction():
            other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            await eventually_async(lambda: first.closed)
        job_id = database.put("noop")
        await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"])

    assert len(connections) == 1


@pytest.mark.parametrize("job_type", ["noop", "plain"])
async def test_worker_that_others_may_take_for_dead_begins_nothing_that_it_has_in_hand(
    database: QueueDatabase, registry: Registry, job_type: str
) -> None:
    """As after a suspension, before its watchdog has looked: others may run these jobs already."""
    begun: list[Any] = []

    @registry.handler("noop")
    async def noop(data: Any) -> None:
        begun.append(data)

    @registry.handler("plain")
    def plain(data: Any) -> None:
        begun.append(data)

    async with running_corridor(database.dsn, registry, stale_limit=60) as running:
        running.marks.last_beat_ns = machine_ns() - 59 * 10**9
        jobs = [database.put(job_type, number) for number in range(3)]
        statement = Queries("pgq_core").claim_jobs(
            queue="default", worker_id=WORKER_ID, limit=10, job_types=None, lease=None
        )
        running.corridor.executor.offer(await statement.fetch_all(await running.corridor.writer.connection()))
        await eventually_async(lambda: [database.outcomes(job_id) for job_id in jobs] == [["released"]] * 3)
        assert not begun
        assert {(database.job(job_id) or {})["attempts"] for job_id in jobs} == {0}
        running.marks.last_beat_ns = machine_ns()
        await eventually_async(lambda: len(begun) == 3)


async def test_a_spent_job_behind_the_last_one_keeps_nobody_from_leaving(
    database: QueueDatabase, registry: Registry
) -> None:
    """It takes no slot: nothing runs and nothing waits after it."""
    gate = asyncio.Event()

    @registry.handler("gated")
    async def gated(data: Any) -> None:
        await gate.wait()

    async with running_corridor(database.dsn, registry, concurrency=1, queues=("other",)) as running:
        last, spent = database.put("gated", priority=1), database.put("gated", attempts=5)
        statement = Queries("pgq_core").claim_jobs(
            queue="default", worker_id=WORKER_ID, limit=10, job_types=None, lease=None
        )
        rows = await statement.fetch_all(await running.corridor.writer.connection())
        running.corridor.executor.offer(in_claim_order(rows))
        gate.set()
        await eventually_async(lambda: database.outcomes(last) == ["succeeded"] and database.letter(spent) is not None)

        await asyncio.wait_for(running.corridor.executor.wait_until_quiet(), 5)


async def test_slot_survives_an_exception_that_cannot_be_read(database: QueueDatabase, registry: Registry) -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    class Evil(Cancel):
        reason = property(lambda self: 1 / 0)  # type: ignore[assignment]  # on purpose

        def __init__(self) -> None:
            Exception.__init__(self)

    @registry.handler("raise")
    async def raise_(data: Any) -> None:
        raise Unreadable if data == "unreadable" else Evil

    jobs = [database.put("raise", data, max_attempts=1) for data in ("unreadable", "evil")]

    async with running_corridor(database.dsn, registry, concurrency=1) as running:
        await eventually_async(lambda: all(database.letter(job_id) for job_id in jobs))

    assert not running.stuck
    errors = [(database.letter(job_id) or {})["last_error"] for job_id in jobs]
    assert errors[0].startswith("Unreadable")
    assert "cannot be read" in errors[1]
