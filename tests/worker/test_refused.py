"""What the database itself refuses, by a trigger or a foreign key, holds up nothing else and is not lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pgq_core import Job
from pgq_core.database import IDLE_LIMIT
from pgq_core.handlers import Registry
from pgq_core.maintenance import Maintenance
from pgq_core.queries import piecemeal
from pgq_core.settings import load_settings
from pgq_core.worker import refused
from pgq_core.worker.careful_claims import CarefulClaims
from pgq_core.worker.transactional import JobTransactions
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually, eventually_async
from tests.support.worker_process import Workers

REFUSE = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not in this house'; END $$
"""
REFUSED_RUNS = "CREATE TRIGGER refuse BEFORE INSERT ON job_runs FOR EACH ROW WHEN ({}) EXECUTE FUNCTION public.refuse()"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(refused, "AGAIN", 0.3)
    registry = Registry()

    @registry.handler("refused")
    async def refused_one(data: Any) -> str:
        return "kept"

    @registry.handler("good")
    async def good(data: Any) -> str:
        return "kept"

    return registry


@contextmanager
def trigger(database: QueueDatabase) -> Iterator[None]:
    database.run(REFUSE)
    database.run(REFUSED_RUNS.format("new.job_type = 'refused'"))
    yield
    database.run("DROP TRIGGER refuse ON job_runs")


@contextmanager
def foreign_key(database: QueueDatabase) -> Iterator[None]:
    database.run("CREATE TABLE public.watched (job_id bigint REFERENCES jobs)")
    database.run("INSERT INTO public.watched SELECT id FROM jobs WHERE job_type = 'refused'")
    yield
    database.run("DROP TABLE public.watched")


@pytest.mark.parametrize("obstacle", [trigger, foreign_key])
async def test_a_refused_outcome_holds_up_no_other_and_is_written_when_it_may_be(
    database: QueueDatabase, registry: Registry, obstacle: Any
) -> None:
    bad = [database.put("refused", priority=1) for _ in range(2)]
    good = [database.put("good") for _ in range(30)]

    async with running_corridor(database.dsn, registry) as running:
        with obstacle(database):
            await eventually_async(lambda: all(database.runs(job_id) for job_id in good))
            later = database.put("good")
            await eventually_async(lambda: database.runs(later))
            assert [(database.job(job_id) or {})["status"] for job_id in bad] == ["running"] * 2
            assert not running.corridor.completer.is_in_trouble
        await eventually_async(lambda: all(database.runs(job_id) for job_id in bad))

    for job_id in bad:
        (run,) = database.runs(job_id)
        assert (run["outcome"], run["success"]) == ("succeeded", True)
    assert running.marks.late_writes == 0
    assert database.all(FAULTS) == []


async def test_a_foreign_key_takes_nothing_from_the_outcome(database: QueueDatabase, registry: Registry) -> None:
    """It says nothing about the values: result and times are written as they were, once it lets go."""
    job_id = database.put("refused")

    async with running_corridor(database.dsn, registry) as running:
        with foreign_key(database):
            await eventually_async(lambda: running.corridor.completer._refused.job_ids() == {job_id})
            await asyncio.sleep(0.5)
        await eventually_async(lambda: database.runs(job_id))

    (run,) = database.runs(job_id)
    assert (run["result"], run["error"]) == ("kept", None)
    assert (run["finished_at"] - run["started_at"]).total_seconds() < 0.5


async def test_a_queue_whose_outcomes_are_refused_leaves_the_others_alone(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused, "CROWD", 5)
    database.run(
        "INSERT INTO jobs (queue, payload) SELECT 'bad', '{\"type\": \"refused\"}' FROM generate_series(1, 5000)"
    )
    good = [database.put("good") for _ in range(100)]

    async with running_corridor(database.dsn, registry, queues=("bad", "default"), concurrency=2) as running:
        with trigger(database):
            await eventually_async(lambda: all(database.runs(job_id) for job_id in good))
            waiting = database.value("SELECT count(*) FROM jobs WHERE queue = 'bad' AND status = 'pending'")
            assert running.corridor.completer.crowded_queues() == {"bad"}
        await eventually_async(lambda: not database.all("SELECT FROM jobs LIMIT 1"), timeout=60)

    assert waiting > 2000
    assert database.all(FAULTS) == []


@pytest.mark.parametrize("state", ["pending", "scheduled", "suspect"])
async def test_a_job_that_may_not_be_touched_stops_no_other(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Every claim, or every promotion, would take it along with the others, and be refused as a whole."""
    monkeypatch.setattr(piecemeal, "PASSED_BY_FOR", 2.0)
    claim, calls = CarefulClaims.claim, list[object]()

    async def counted(self: CarefulClaims, *args: Any, **options: Any) -> Any:
        calls.append(args)
        return await claim(self, *args, **options)

    monkeypatch.setattr(CarefulClaims, "claim", counted)
    columns: dict[str, object] = {"suspect": True} if state == "suspect" else {}
    held = [database.put("good", priority=9, not_before="2999-01-01", **columns) for _ in range(2)]
    good = [database.put("good", not_before="2999-01-01", **columns) for _ in range(10)]
    elsewhere = database.put("good", queue="other")
    database.run(REFUSE)
    database.run(
        f"CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW WHEN (old.id <= {held[-1]} AND new.status "
        f"= '{'pending' if state == 'scheduled' else 'running'}') EXECUTE FUNCTION public.refuse()"
    )
    database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    database.run(
        "UPDATE jobs SET not_before = now(), status = %s WHERE queue = 'default'",
        "scheduled" if state == "scheduled" else "pending",
    )
    database.run("ALTER TABLE jobs ENABLE TRIGGER USER")

    async with running_corridor(database.dsn, registry, queues=("default", "other")):
        await eventually_async(lambda: all(database.runs(job_id) for job_id in (*good, elsewhere)))
        assert database.value("SELECT count(*) FROM jobs") == len(held)
        calls.clear()
        for _ in range(3):
            more = database.put("good", **columns)
            await eventually_async(lambda: database.runs(more))  # noqa: B023
        assert len(calls) <= 3, "but for those that were refused it goes on as ever"
        database.run("DROP TRIGGER refuse ON jobs")
        await eventually_async(lambda: all(database.runs(job_id) for job_id in held))

    assert database.all(FAULTS) == []


async def test_the_maintenance_promotes_around_a_job_that_may_not_be_touched(database: QueueDatabase) -> None:
    held, free = [database.put("good", not_before="2999-01-01") for _ in range(2)]
    database.run(REFUSE)
    database.run(
        f"CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW WHEN (old.id = {held} AND new.status = 'pending') "
        "EXECUTE FUNCTION public.refuse()"
    )
    database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    database.run("UPDATE jobs SET not_before = now()")
    database.run("ALTER TABLE jobs ENABLE TRIGGER USER")
    maintenance = Maintenance(load_settings(dsn=database.dsn))

    await maintenance.promoter.run_once()

    assert [(database.job(job_id) or {})["status"] for job_id in (held, free)] == ["scheduled", "pending"]
    await maintenance.close()


async def test_so_many_are_kept_and_no_more(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every second job is refused, the worker fills up with them at last, and waits as well."""
    monkeypatch.setattr(refused, "MOST", 3)
    jobs = [database.put(name) for _ in range(6) for name in ("refused", "good")]

    async with running_corridor(database.dsn, registry) as running:
        with trigger(database):
            await eventually_async(lambda: running.corridor.completer.is_in_trouble)
        await eventually_async(lambda: all(database.runs(job_id) for job_id in jobs))

    assert database.all(FAULTS) == []


async def test_where_all_is_refused_nothing_new_is_claimed_and_no_result_is_lost(
    database: QueueDatabase, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused, "CROWD", 3)
    jobs = [database.put("refused") for _ in range(20)]

    async with running_corridor(database.dsn, registry) as running:
        with trigger(database):
            await eventually_async(lambda: running.corridor.completer.crowded_queues() == {"default"})
            new = database.put("refused", priority=9)
            await asyncio.sleep(0.5)
            assert (database.job(new) or {})["status"] == "pending"
        await eventually_async(lambda: all(database.runs(job_id) for job_id in [*jobs, new]))

    assert database.value("SELECT count(*) FROM job_runs WHERE result = '\"kept\"'") == len(jobs) + 1
    assert database.all(FAULTS) == []


def test_a_dead_workers_other_jobs_come_back_where_one_is_refused(database: QueueDatabase, workers: Workers) -> None:
    worker = workers.start(concurrency=2, poll=0.1)
    worker.wait_until_ready()
    bad, good = database.put("sleep_async", {"seconds": 60}), database.put("sleep_async", {"seconds": 60})
    database.until_started(2)
    database.run(REFUSE)
    database.run(REFUSED_RUNS.format(f"new.job_id = {bad}"))
    os.kill(worker.runner_pid, signal.SIGKILL)

    eventually(lambda: database.outcomes(good) == ["lost"], timeout=60)
    assert "job_not_given_back" in worker.text()
    assert database.value("SELECT count(*) FROM workers WHERE state = 'crashed'") == 1
    assert (database.job(bad) or {})["status"] == "running"


async def test_who_falls_silent_between_outcome_and_commit_does_not_keep_the_job_for_ever(
    database: QueueDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler itself may be silent in its transaction for as long as its job may take."""
    look = "SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)"
    seen: dict[str, float] = {}
    finish, registry = JobTransactions._finish, Registry()

    async def watched(self: JobTransactions, conn: psycopg.AsyncConnection[Any], write: Any) -> None:
        (seen["at the end"],) = await (await conn.execute(look)).fetchone() or ()
        await finish(self, conn, write)

    monkeypatch.setattr(JobTransactions, "_finish", watched)

    @registry.handler("own", transactional=True)
    async def own(data: Any, job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
        (seen["in the handler"],) = await (await conn.execute(look)).fetchone() or ()

    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '10s'")
    job_id = database.put("own")
    async with running_corridor(database.dsn, registry):
        await eventually_async(lambda: database.runs(job_id))

    assert seen == {"in the handler": 0, "at the end": IDLE_LIMIT}
