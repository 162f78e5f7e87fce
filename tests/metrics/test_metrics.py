"""What `/metrics` says is what the tables say, whoever asks and whatever has been pruned."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgq_core.errors import DatabaseUnavailable
from pgq_core.handlers import Registry
from pgq_core.job_queue import JobQueue
from pgq_core.metrics.labels import Labels
from pgq_core.metrics.reader import MetricsReader
from pgq_core.metrics.service import MetricsService
from pgq_core.queries import Queries
from pgq_core.settings import load_settings
from tests.console.network import Network
from tests.metrics.samples import Samples, label_values, samples, value
from tests.support.corridors import running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

OUTCOMES = ("succeeded", "retried", "dead", "lost", "released", "snoozed", "cancelled", "discarded", "expired")


def service_on(dsn: str, **options: Any) -> MetricsService:
    return MetricsService(load_settings(dsn=dsn), **options)


async def scraped(dsn: str) -> Samples:
    """By a process that has just started."""
    service = service_on(dsn)
    try:
        await service.run_once()
        return samples(service.exposition())
    finally:
        await service.stopped()


def count(database: QueueDatabase, queue: str, age: str = "0 s", **columns: Any) -> None:
    """Statistics as a finish leaves them: runs of 3 ms."""
    runs = sum(columns.values())
    names = "".join(f", {name}" for name in columns)
    signs = ", %s" * len(columns)
    database.run(
        f"""INSERT INTO job_stats (bucket, queue, job_type, slot, duration_seconds, durations, waits{names})
            SELECT date_bin('5 seconds', now() - %s::interval, timestamptz '2000-01-01 00:00+00'), %s, 'a', 0,
                   0.003 * %s, cells, cells{signs}
              FROM (SELECT count_cells(array_fill(2, ARRAY[%s])) AS cells) counted""",
        age,
        queue,
        runs,
        *columns.values(),
        runs,
    )


async def test_every_outcome_is_counted_as_job_runs_has_it(dsn: str, database: QueueDatabase) -> None:
    """Real runs of every kind, by a real worker and by a loop of one's own."""
    registry = Registry()

    @registry.handler("good")
    def good(data: dict[str, Any]) -> None: ...

    @registry.handler("bad", max_attempts=2, backoff_base=0.01, backoff_cap=0.01)
    def bad(data: dict[str, Any]) -> None:
        raise ValueError("no")

    with JobQueue(dsn, registry=registry) as queue:
        queue.enqueue_many([("good", {})] * 20 + [("bad", {})] * 5)
        queue.cancel(queue.enqueue("good", {}, delay=3600).id)
        loop_job = queue.enqueue("loop", {}, queue="loops")
        queue.release(queue.claim("loops")[0])
        queue.complete(queue.claim("loops")[0])
        assert queue.get(loop_job.id).state == "succeeded"
        async with running_corridor(dsn, registry):
            await eventually_async(lambda: database.value("SELECT count(*) = 5 FROM dead_letter_jobs"))
            await eventually_async(lambda: database.value("SELECT count(*) = 0 FROM jobs"))

    found = await scraped(dsn)

    runs = database.all("SELECT queue, outcome, count(*) AS n FROM job_runs GROUP BY queue, outcome")
    expected = {(row["queue"], row["outcome"]): row["n"] for row in runs}
    assert expected["default", "retried"] == 5
    assert expected["loops", "released"] == 1
    for queue_name in ("default", "loops"):
        for outcome in OUTCOMES:
            counted = value(found, "jobs_processed_total", queue=queue_name, result=outcome)
            assert counted == expected.get((queue_name, outcome), 0), (queue_name, outcome)
    assert value(found, "dead_letter_total", queue="default") == 5
    ran = database.value("SELECT count(*) FROM job_runs WHERE queue = 'default' AND attempt > 0")
    assert value(found, "job_duration_seconds_count", queue="default") == ran
    assert value(found, "job_duration_seconds_bucket", queue="default", le="+Inf") == ran
    assert value(found, "dead_letters_unresolved", queue="default") == 5


async def test_a_queue_that_nobody_has_used_has_zeros(dsn: str, database: QueueDatabase) -> None:
    database.run("INSERT INTO job_types (name, queue) VALUES ('bill', 'billing')")
    database.run("INSERT INTO worker_pools (host, name, queues) VALUES ('h', 'p', '{mails}')")
    database.run("INSERT INTO workers (id, host, queues, concurrency) VALUES ('w', 'h', '{reports}', 4)")

    found = await scraped(dsn)

    for queue in ("billing", "mails", "reports"):
        assert {value(found, "jobs_processed_total", queue=queue, result=outcome) for outcome in OUTCOMES} == {0}
        assert value(found, "dead_letter_total", queue=queue) == 0
        assert value(found, "jobs_depth", queue=queue, status="pending") == 0
        assert value(found, "job_duration_seconds_count", queue=queue) == 0
        assert value(found, "job_wait_seconds_count", queue=queue) == 0
    assert value(found, "queue_workers", queue="reports") == 1
    assert value(found, "workers_alive") == 1


async def test_gauges_say_how_it_is_now(dsn: str, database: QueueDatabase) -> None:
    for _ in range(3):
        database.put("a", queue="mails", created_at="2020-01-01T00:00:00Z", not_before="2020-01-01T00:00:00Z")
    database.run("INSERT INTO jobs (queue, payload, not_before) VALUES ('mails', '{\"type\": \"a\"}', now() + '1 day')")
    database.run("SELECT pause('mails')")
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, heartbeat_at, late_writes) VALUES "
        "('live', 'h', '{mails}', 4, 'running', now(), 2), "
        "('stale', 'h', '{mails}', 4, 'running', now() - '1 h'::interval, 3)"
    )

    found = await scraped(dsn)

    assert value(found, "jobs_depth", queue="mails", status="pending") == 3
    assert value(found, "jobs_depth", queue="mails", status="scheduled") == 1
    assert value(found, "jobs_depth_exact", queue="mails", status="pending") == 1
    assert value(found, "job_oldest_pending_age_seconds", queue="mails") > 86400
    assert value(found, "queue_paused", queue="mails") == 1
    assert (value(found, "workers_alive"), value(found, "queue_workers", queue="mails")) == (1, 1)
    assert value(found, "late_writes_refused_total") == 5


async def test_loops_are_counted_by_kind_wherever_they_turn(dsn: str, database: QueueDatabase) -> None:
    told = {"claim": {"age": 90, "limit": 30}, "reaper": {"age": 1, "limit": 60}}
    for worker in ("one", "two"):
        database.run(
            "INSERT INTO workers (id, host, queues, concurrency, state, heartbeat_at, loops) "
            "VALUES (%s, 'h', '{mails}', 4, 'running', now(), %s)",
            worker,
            Jsonb(told),
        )
    database.run(
        "INSERT INTO leases (name, holder, expires_at, renewed_at, loops) VALUES "
        "('maintenance', 'a process of its own', now() + '1 h'::interval, now(), %s),"
        "('another', 'one that is gone', now() - '1 h'::interval, now() - '2 h'::interval, %s)",
        Jsonb({"reaper": {"age": 300, "limit": 60}, "retention": {"age": 2, "limit": 180}}),
        Jsonb({"promoter": {"age": 900, "limit": 60}}),
    )

    found = await scraped(dsn)

    assert {name: value(found, "loops_stalled", loop=name) for name in ("claim", "reaper", "retention")} == {
        "claim": 2,
        "reaper": 1,
        "retention": 0,
    }
    assert value(found, "loop_last_good_turn_age_seconds", loop="reaper") >= 300
    assert "promoter" not in label_values(found, "loops_stalled", "loop")


async def test_a_depth_that_is_estimated_says_so(dsn: str, database: QueueDatabase) -> None:
    database.run('INSERT INTO jobs (payload) SELECT \'{"type": "a"}\' FROM generate_series(1, 10100)')

    found = await scraped(dsn)

    assert value(found, "jobs_depth_exact", queue="default", status="pending") == 0
    assert value(found, "jobs_depth", queue="default", status="pending") >= 10_000


async def test_many_processes_show_the_same_totals_and_a_new_one_starts_where_they_are(
    dsn: str, database: QueueDatabase
) -> None:
    count(database, "mails", succeeded=7, retried=2)
    count(database, "mails", "2 hours", succeeded=5)
    old = service_on(dsn)
    await old.run_once()
    count(database, "mails", "30 s", dead=1)
    await old.run_once()

    shown = [samples(old.exposition()), await scraped(dsn)]
    await old.stopped()

    for found in shown:
        assert value(found, "jobs_processed_total", queue="mails", result="succeeded") == 12
        assert value(found, "jobs_processed_total", queue="mails", result="dead") == 1
        assert value(found, "job_duration_seconds_sum", queue="mails") == pytest.approx(0.003 * 15)
        assert value(found, "job_duration_seconds_bucket", queue="mails", le="0.002") == 0
        assert value(found, "job_duration_seconds_bucket", queue="mails", le="0.004") == 15


async def test_a_run_that_is_written_late_is_counted_with_the_next_base(dsn: str, database: QueueDatabase) -> None:
    """Its worker had lost the database for an hour."""
    service = service_on(dsn, base_every=0.0)
    await service.run_once()
    count(database, "mails", "1 hour", succeeded=1)

    async def is_counted() -> bool:
        await service.run_once()
        return 'jobs_processed_total{queue="mails",result="succeeded"} 1.0' in service.exposition().decode()

    await eventually_async(is_counted, interval=0.05)
    await service.stopped()


async def test_counters_never_fall_when_rows_are_rolled_up_and_pruned(dsn: str, database: QueueDatabase) -> None:
    for age in ("100 days", "95 days", "10 days", "3 hours", "1 s"):
        count(database, "mails", age, succeeded=3, lost=1)
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, late_writes, stopped_at, state) "
        "VALUES ('gone', 'h', '{mails}', 1, 4, now() - '2 days'::interval, 'stopped')"
    )
    queries = Queries("pgq_core")
    before = await scraped(dsn)

    with psycopg.connect(dsn, autocommit=True) as conn:
        queries.roll_up_stats(step=timedelta(minutes=1), older_than=timedelta(hours=1), limit=1000).execute_sync(conn)
        queries.roll_up_stats(step=timedelta(hours=1), older_than=timedelta(days=2), limit=1000).execute_sync(conn)
        pruned = [
            queries.prune_stats(kept=timedelta(days=90), limit=1).execute_sync(conn),
            queries.prune_stats(kept=timedelta(days=90), limit=1000).execute_sync(conn),
            queries.prune_stats(kept=timedelta(days=90), limit=1000).execute_sync(conn),
        ]
        queries.prune_workers(kept=timedelta(days=1), keep=0).execute_sync(conn)
    after = await scraped(dsn)

    assert pruned == [1, 1, 0]
    assert database.value("SELECT count(*) FROM workers") == 0
    totals = ("jobs_processed_total", "job_duration_seconds", "job_wait_seconds", "jobs_reaped", "late_writes_refused")
    assert {key: found for key, found in before.items() if key[0].startswith(totals)} == {
        key: found for key, found in after.items() if key[0].startswith(totals)
    }
    assert value(after, "jobs_processed_total", queue="mails", result="succeeded") == 15
    assert value(after, "jobs_reaped_total", queue="mails") == 5
    assert value(after, "late_writes_refused_total") == 4


async def test_invented_names_cannot_push_a_real_queue_out(dsn: str, database: QueueDatabase) -> None:
    database.run("INSERT INTO workers (id, host, queues, concurrency) VALUES ('w', 'h', '{zebra}', 4)")
    for number in range(12):
        count(database, f"spam-{number:02d}", succeeded=1)
        database.put("a", queue=f"spam-{number:02d}")
    count(database, "zebra", succeeded=100)
    labels = Labels(cap=5)
    reader = MetricsReader(Queries("pgq_core"), stale_limit=timedelta(seconds=30), labels=labels)

    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        reading = await reader.read(conn)

    assert set(reading.queues) == {*labels.names, "other"}
    assert len(labels.names) == 5
    totals = {name: sum(figures.totals.by_outcome.values()) for name, figures in reading.queues.items()}
    assert totals["zebra"] == 100
    assert totals["other"] == 8
    assert sum(figures.depths.pending.value for figures in reading.queues.values()) == 12


async def test_labels_hold_whatever_a_queue_is_called(dsn: str, database: QueueDatabase) -> None:
    names = ['a"b', "a\\b", "a\nb", "{x}", "ж", "\x1b[31m", "le", "a=b,c"]
    for name in names:
        count(database, name, succeeded=1)

    found = await scraped(dsn)

    assert label_values(found, "jobs_processed_total", "queue") >= set(names)


async def test_a_scrape_never_waits_and_says_how_old_it_is(dsn: str, database: QueueDatabase) -> None:
    count(database, "mails", succeeded=1)
    network = Network(dsn)
    await network.open()
    service = service_on(network.address)
    nothing_yet = samples(service.exposition())
    assert value(nothing_yet, "database_up") == 0
    assert label_values(nothing_yet, "jobs_processed_total", "queue") == set()
    await service.run_once()
    assert value(samples(service.exposition()), "database_up") == 1

    network.cut()
    with pytest.raises((psycopg.OperationalError, DatabaseUnavailable)):
        await service.run_once()
    found = samples(service.exposition())

    assert value(found, "database_up") == 0
    assert value(found, "metrics_refresh_failures_total") == 1
    assert value(found, "metrics_age_seconds") > 0
    assert value(found, "jobs_processed_total", queue="mails", result="succeeded") == 1
    network.mend()
    await service.run_once()
    assert value(samples(service.exposition()), "database_up") == 1
    await service.stopped()
    await network.close()


@pytest.mark.slow
async def test_a_silent_database_counts_as_away_while_a_reading_waits_for_it(dsn: str) -> None:
    network = Network(dsn)
    await network.open()
    service = service_on(network.address, interval=0.05)
    await service.run_once()
    network.swallow()
    waiting = asyncio.create_task(service.run_once())

    await eventually_async(lambda: value(samples(service.exposition()), "database_up") == 0)
    assert not waiting.done()
    waiting.cancel()  # as a turn that takes too long is given up
    await asyncio.wait({waiting})

    assert value(samples(service.exposition()), "metrics_refresh_failures_total") == 1
    network.mend()
    service.interval = 60.0
    await service.run_once()
    assert value(samples(service.exposition()), "database_up") == 1
    await service.stopped()
    await network.close()
