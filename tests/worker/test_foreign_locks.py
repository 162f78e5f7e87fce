"""A transaction that somebody has left open holds up the one job that it has locked, and no other."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import psycopg
import pytest

from pgq_core.handlers import Registry
from pgq_core.worker.batch import Batch
from pgq_core.worker.writer import Writer
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


@pytest.mark.slow
def test_a_locked_running_job_holds_up_no_other_outcome(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection
) -> None:
    workers.start(concurrency=4)
    held = database.put("sleep_async", {"seconds": 1})
    database.until_started(1)
    stranger.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (held,))
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pgq worker: finish' AND wait_event_type = 'Lock'"
    eventually(lambda: database.all(waits), timeout=60)
    others = [database.put("noop") for _ in range(20)]

    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in others), timeout=60)
    assert database.outcomes(held) == []
    stranger.rollback()
    eventually(lambda: database.outcomes(held) == ["succeeded"], timeout=60)
    assert database.all(FAULTS) == []


@pytest.mark.parametrize("verb", ["cancel", "discard"])
def test_a_caller_who_leaves_his_transaction_open_holds_up_no_statistics_of_a_worker(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection, verb: str
) -> None:
    """What his verb counts is of the queue and type that the worker counts too."""
    worker = workers.start()
    if verb == "cancel":
        target = database.put("noop", not_before="2999-01-01")
    else:
        dead = database.put("fail", {"text": "x"}, max_attempts=1)
        target = eventually(lambda: database.letter(dead), timeout=60)["id"]
    worker.wait_until_ready()
    stranger.execute(f"SELECT {verb}(%s)", (target,))  # type: ignore[arg-type]  # one of two words
    others = [database.put("noop") for _ in range(20)]

    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in others), timeout=60)
    assert database.value("SELECT slot FROM workers") == 0


async def test_many_locked_jobs_hold_up_no_fresh_outcome(database: QueueDatabase, stranger: psycopg.Connection) -> None:
    """Each alone would be waited for: thirty of them left the worker no time for anything else."""
    gate, registry = asyncio.Event(), Registry()

    @registry.handler("held")
    async def held(data: Any) -> None:
        await gate.wait()

    @registry.handler("free")
    async def free(data: Any) -> None: ...

    locked = [database.put("held") for _ in range(30)]
    async with running_corridor(database.dsn, registry, concurrency=40) as running:
        await eventually_async(lambda: running.marks.running == 30)
        stranger.execute("UPDATE jobs SET max_attempts = 9 WHERE job_type = 'held'")
        gate.set()
        for _ in range(3):
            fresh = [database.put("free") for _ in range(20)]
            await eventually_async(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in fresh))  # noqa: B023
        assert [database.outcomes(job_id) for job_id in locked] == [[]] * 30
        stranger.rollback()

    assert [database.outcomes(job_id) for job_id in locked] == [["succeeded"]] * 30, "tried once more at the end"
    assert running.marks.late_writes == 0
    assert database.all(FAULTS) == []


def test_a_worker_that_leaves_waits_within_its_grace_for_a_lock_on_what_has_ended(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection
) -> None:
    """Otherwise the job would go back, and run a second time."""
    worker = workers.start(grace=60)
    held = database.put("sleep_async", {"seconds": 0.5})
    database.until_started(1)
    stranger.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (held,))
    eventually(lambda: "outcomes_meet_locks" in worker.text(), timeout=60)
    os.kill(worker.process.pid, signal.SIGTERM)
    eventually(lambda: "worker_stopping" in worker.text(), timeout=60)
    stranger.rollback()

    assert worker.process.wait(timeout=60) == 0
    assert database.outcomes(held) == ["succeeded"]


async def test_batches_are_wide_again_behind_a_row_at_fault(
    database: QueueDatabase, stranger: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is refused made all of a backlog behind it go one by one."""
    registry, sizes, write = Registry(), [], Writer.write

    async def counted(self: Writer, batch: Batch, *, in_haste: bool = False) -> None:
        size = len(batch)
        await write(self, batch, in_haste=in_haste)
        sizes.append(size)

    monkeypatch.setattr(Writer, "write", counted)

    @registry.handler("job")
    async def job(data: Any) -> None: ...

    async with running_corridor(database.dsn, registry, concurrency=500) as running:
        await eventually_async(running.corridor.completer.is_empty)
        database.run('INSERT INTO jobs (payload) SELECT \'{"type": "job"}\' FROM generate_series(1, 20000)')
        database.run("CREATE TABLE public.watched (job_id bigint REFERENCES jobs)")
        database.run("INSERT INTO public.watched SELECT max(id) - 10000 FROM jobs")
        await eventually_async(lambda: database.value("SELECT count(*) FROM jobs") == 1, timeout=60)
        database.run("DROP TABLE public.watched")

    assert sizes.index(1) < len(sizes) - 5, "it was sought"
    assert max(sizes[len(sizes) // 2 :]) > 50
    assert database.value("SELECT count(*) FROM job_runs WHERE success") == 20_000
    assert database.all(FAULTS) == []


@pytest.mark.slow
@pytest.mark.parametrize("job_type", ["insert_row", "insert_row_plain"])
def test_a_locked_job_is_not_waited_for_at_the_end_of_its_own_transaction(
    database: QueueDatabase, workers: Workers, stranger: psycopg.Connection, job_type: str
) -> None:
    """Its work is undone, and done again once the lock is gone: neither a spent attempt nor a stuck worker."""
    worker = workers.start(concurrency=2)
    held = database.put(job_type, {"seconds": 1.0}, timeout="6 s")
    database.until_started(1)
    stranger.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (held,))
    eventually(lambda: "outcomes_meet_locks" in worker.text(), timeout=60)
    other = database.put("noop")
    eventually(lambda: database.outcomes(other) == ["succeeded"], timeout=60)
    stranger.rollback()

    eventually(lambda: database.outcomes(held)[-1:] == ["succeeded"], timeout=60)
    assert database.value("SELECT max(attempt) FROM job_runs WHERE job_id = %s", held) == 1
    assert database.value("SELECT count(*) FROM effects WHERE job_id = %s", held) == 1
    assert database.value("SELECT count(*) FROM workers") == 1
    assert database.all(FAULTS) == []
