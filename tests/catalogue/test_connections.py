"""Database connections and server limits, one fault at a time; whole outages are in tests/worker/test_outage.py."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from pgq_core import JobQueue
from pgq_core.cli.checkup import check_up
from pgq_core.database import connect
from pgq_core.handlers import Registry
from pgq_core.inspector import Inspector
from pgq_core.maintenance import Maintenance
from pgq_core.queries import Queries
from pgq_core.runtime import Database
from pgq_core.settings import load_settings
from pgq_core.sql import composed_query, query_names
from pgq_tui.view_model.attention import needs_attention
from tests.catalogue.rows import add_running, add_worker
from tests.console.network import Network
from tests.schema.roles import dsn_of, new_role
from tests.support.corridors import running_corridor
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually_async

# Nobody beats for a corridor inside a test: no test may take longer than this stale limit.
FAST = {"heartbeat": 1, "stale_limit": 300, "reaper_interval": 0.1, "poll": 0.05}


@pytest.fixture
def noop(registry: Registry) -> Registry:
    @registry.handler("job")
    async def job(data: Any) -> None:
        pass

    return registry


@contextlib.asynccontextmanager
async def running_maintenance(dsn: str) -> AsyncIterator[Maintenance]:
    maintenance, stop = Maintenance(load_settings(dsn=dsn, **FAST)), asyncio.Event()
    task = asyncio.create_task(maintenance.run(stop))
    try:
        yield maintenance
    finally:
        stop.set()
        await task


def sever(database: QueueDatabase, application: str) -> None:
    database.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE %s",
        application,
    )


async def test_every_function_works_again_whichever_session_was_severed(
    database: QueueDatabase, noop: Registry
) -> None:
    add_worker(database, "gone", stopped=True)
    async with running_corridor(database.dsn, noop), running_maintenance(database.dsn):
        for victim in ("pgq worker: claim", "pgq worker: finish", "pgq maintenance", "pgq %") * 2:
            sever(database, victim)
            now, later = database.put("job"), database.put("job")
            database.run("UPDATE jobs SET not_before = now() + interval '50 ms' WHERE id = %s", later)
            orphan = add_running(database, "gone")
            cancelled = database.put("job", not_before="2100-01-01")
            database.run("SELECT cancel(%s)", cancelled)
            ended = {now: "succeeded", later: "succeeded", orphan: "succeeded", cancelled: "cancelled"}
            await eventually_async(
                lambda ended=ended: all(database.outcomes(job)[-1:] == [how] for job, how in ended.items()), timeout=30
            )

    assert database.all("SELECT FROM jobs") == []
    assert database.all(FAULTS) == []


async def test_without_any_notification_the_poll_finds_every_job(database: QueueDatabase, noop: Registry) -> None:
    database.run("ALTER TABLE jobs DISABLE TRIGGER jobs_wake_workers")
    try:
        async with running_corridor(database.dsn, noop):
            for _ in range(3):
                await eventually_async(lambda: database.all("SELECT FROM worker_waits"))  # idle
                sever(database, "pgq worker: claim")
                job_id = database.put("job")
                await eventually_async(lambda job_id=job_id: database.outcomes(job_id) == ["succeeded"], timeout=30)
    finally:
        database.run("ALTER TABLE jobs ENABLE TRIGGER jobs_wake_workers")


async def test_worker_that_gets_no_connection_waits_and_costs_no_attempt(
    database: QueueDatabase, noop: Registry
) -> None:
    with new_role(database.dsn) as role:
        database.run(f"GRANT ALL ON SCHEMA pgq_core TO {role}")
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            database.run(f"GRANT ALL ON ALL {kind} IN SCHEMA pgq_core TO {role}")
        async with running_corridor(dsn_of(role, database.dsn), noop):
            first = database.put("job")
            await eventually_async(lambda: database.outcomes(first) == ["succeeded"], timeout=30)

            database.run(f"ALTER ROLE {role} CONNECTION LIMIT 0")  # "too many connections", SQLSTATE 53300
            sever(database, "pgq worker%")
            jobs = [database.put("job") for _ in range(20)]
            await asyncio.sleep(1.0)
            assert database.value("SELECT count(*) FROM jobs WHERE status = 'pending' AND attempts = 0") == 20
            database.run(f"ALTER ROLE {role} CONNECTION LIMIT -1")

            await eventually_async(
                lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in jobs), timeout=30
            )


class CountingNetwork(Network):
    """Counts who knocks while it refuses."""

    tries = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tries += self._refuses
        await super()._serve(reader, writer)


@pytest.mark.slow
async def test_refused_connections_are_not_asked_for_in_a_storm(database: QueueDatabase, noop: Registry) -> None:
    network = CountingNetwork(database.dsn)
    await network.open()
    try:
        with capture_logs() as logs:
            async with running_corridor(network.address, noop), running_maintenance(network.address) as maintenance:
                await eventually_async(lambda: maintenance.is_leader)
                began = asyncio.get_running_loop().time()
                network.cut()
                await asyncio.sleep(5.0)
                seconds = asyncio.get_running_loop().time() - began
                tries = network.tries
                network.mend()
                job_id = database.put("job")
                await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"], timeout=30)
    finally:
        await network.close()

    # Two processes' worth of connections: claims, and maintenance; each with one more at its very beginning.
    assert tries <= 2 * seconds + 2
    waits = [line for line in logs if "wait" in line["event"]]
    assert 0 < len(waits) <= 20


@pytest.mark.parametrize("code", ["53100", "53200", "53400"])
async def test_full_disk_costs_no_attempt_and_heals_by_itself(
    database: QueueDatabase, noop: Registry, code: str
) -> None:
    database.run(
        f"CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '{code}'; END $$"
    )
    database.run("CREATE TRIGGER full_disk BEFORE INSERT ON job_stats EXECUTE FUNCTION public.full_disk()")
    jobs = [database.put("job", max_attempts=1) for _ in range(20)]
    async with running_corridor(database.dsn, noop, concurrency=3) as running:
        try:
            await eventually_async(lambda: running.corridor.completer.is_in_trouble, timeout=30)
            await asyncio.sleep(0.3)
            assert database.all("SELECT FROM job_runs") == []
        finally:
            database.run("DROP FUNCTION public.full_disk() CASCADE")
        await eventually_async(lambda: all(database.outcomes(job) == ["succeeded"] for job in jobs), timeout=30)

    assert database.all("SELECT FROM dead_letter_jobs") == []
    assert database.all(FAULTS) == []


async def test_short_time_limits_of_the_administrator_stop_nothing(database: QueueDatabase, noop: Registry) -> None:
    name = database.value("SELECT current_database()")
    limits = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
    if database.value("SELECT current_setting('server_version_num')::int") >= 170000:
        limits.append("transaction_timeout")
    database.run(
        "INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, max_attempts, reason, "
        "created_at, died_at, origin_job_id, resolution, resolved_at) "
        "SELECT n, 'default', '{\"type\": \"job\"}', 'x', 1, 1, 'exhausted', now() - interval '90 days', "
        "now() - interval '90 days', n, 'discarded', now() - interval '60 days' FROM generate_series(1, 2500) n"
    )
    for limit in limits:
        database.run(f"ALTER DATABASE {name} SET {limit} = '500ms'")
    try:
        async with running_corridor(database.dsn, noop), running_maintenance(database.dsn):
            with JobQueue(database.dsn, timeout=20) as queue:
                jobs = [queue.enqueue("job", n).id for n in range(200)]
            await eventually_async(lambda: database.all("SELECT FROM jobs LIMIT 1") == [], timeout=60)
            await eventually_async(lambda: database.all("SELECT FROM dead_letter_jobs LIMIT 1") == [], timeout=60)
    finally:
        for limit in limits:
            database.run(f"ALTER DATABASE {name} RESET {limit}")

    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'succeeded'") == len(jobs)


def test_only_the_wish_to_be_woken_is_committed_without_waiting_for_the_disk() -> None:
    unsynced = [name for name in query_names() if "set_config('synchronous_commit'" in composed_query(name, "pgq_core")]

    assert unsynced == ["set_waiting"]


COMMIT_LOG = """
CREATE TABLE public.commits (program text, act text, setting text);
CREATE FUNCTION public.note_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.commits
    VALUES (current_setting('application_name'), tg_op, current_setting('synchronous_commit'));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note_commit AFTER UPDATE OR DELETE ON jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_commit()
"""
NO_COMMIT_LOG = """
DROP TRIGGER note_commit ON jobs;
DROP FUNCTION public.note_commit();
DROP TABLE public.commits
"""


@pytest.mark.parametrize("setting", ["on", "local"])
async def test_workers_commit_as_the_server_says(database: QueueDatabase, registry: Registry, setting: str) -> None:
    """A claim that a crash of the server forgets is a token given out twice. Looked at when the commit begins."""

    @registry.handler("job", retry=lambda attempt, error: 0.01)
    async def job(data: Any) -> None:
        if data == "fail":
            raise RuntimeError("as asked")

    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET synchronous_commit = {setting}")
    database.run(COMMIT_LOG)
    try:
        async with running_corridor(database.dsn, registry):
            good, bad = database.put("job"), database.put("job", "fail", max_attempts=2)
            await eventually_async(
                lambda: database.outcomes(good) == ["succeeded"] and database.letter(bad), timeout=30
            )
        commits = database.all("SELECT DISTINCT program, act, setting FROM public.commits ORDER BY program, act")
    finally:
        database.run(NO_COMMIT_LOG)
        database.run(f"ALTER DATABASE {name} RESET synchronous_commit")

    assert {(row["program"], row["act"]) for row in commits} >= {
        ("pgq worker: claim", "UPDATE"),
        ("pgq worker: finish", "UPDATE"),
        ("pgq worker: finish", "DELETE"),
    }
    assert {row["setting"] for row in commits} == {setting}


async def test_finish_and_enqueue_tell_nobody_and_a_statement_of_many_tells_once(
    database: QueueDatabase, queue: JobQueue, queries: Queries
) -> None:
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as listener:
        cursor = await listener.execute("SELECT pgq_core.wake_channel()")
        (channel,) = await cursor.fetchone() or ("",)
        await listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        for number in range(50):
            queue.enqueue("job", number)
        for job in queue.claim("default", 50):
            queue.complete(job)
        nobody = [notify.payload async for notify in listener.notifies(timeout=0.2)]
        add_worker(database, "sleeper")
        async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as sleeper:
            await queries.set_waiting(worker_id="sleeper", waiting=True).execute(sleeper)
        queue.enqueue_many([("job", number) for number in range(50)])
        one = [notify.payload async for notify in listener.notifies(timeout=60, stop_after=1)]
        one += [notify.payload async for notify in listener.notifies(timeout=0.2)]

    assert nobody == []
    assert [word for word in one if re.fullmatch("jobs", word)] == ["jobs"]


async def test_server_that_may_forget_accepted_jobs_is_named(database: QueueDatabase, queries: Queries) -> None:
    database_name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {database_name} SET synchronous_commit = off")
    try:
        async with await connect(database.dsn, application_name="test") as conn:
            view = await Inspector(queries).overview(conn)
        findings = check_up(load_settings(dsn=database.dsn), Database(database.dsn, "pgq_core", is_embedded=False))
    finally:
        database.run(f"ALTER DATABASE {database_name} RESET synchronous_commit")

    (attention,) = [found for found in needs_attention(view) if found.key == "forgetful"]
    assert attention.text == "synchronous_commit is off: a crash may lose accepted jobs"
    (finding,) = [finding for finding in findings if finding.check == "durability"]
    assert "synchronous_commit = off" in finding.detail
