"""What is past retention goes; what still needs somebody stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgq_core.database import LOCK_LIMIT
from pgq_core.maintenance import Maintenance
from pgq_core.settings import load_settings
from tests.support.queue_database import QueueDatabase


def partitions(database: QueueDatabase) -> list[str]:
    rows = database.all(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "WHERE i.inhparent = 'job_runs'::regclass ORDER BY 1"
    )
    return [row["relname"] for row in rows]


def partition_of(day: datetime) -> str:
    return f"job_runs_{day:%Y%m%d}"


def make_partition(database: QueueDatabase, days_ago: int) -> str:
    day = datetime.now(UTC) - timedelta(days=days_ago)
    database.run("SELECT ensure_run_partitions(%s, %s)", day.date(), day.date())
    database.run("INSERT INTO job_runs (job_id, worker_id, started_at, finished_at) VALUES (1, 'w', %s, %s)", day, day)
    return partition_of(day)


@pytest.fixture
def dsn_database(dsn: str) -> Iterator[QueueDatabase]:
    """Tables come and go here: a database of its own."""
    database = QueueDatabase(dsn)
    yield database
    database.close()


def maintenance_on(database: QueueDatabase, **settings: object) -> Maintenance:
    return Maintenance(load_settings(dsn=database.dsn, **settings))


async def test_partitions_are_made_ahead(dsn_database: QueueDatabase) -> None:
    maintenance = maintenance_on(dsn_database)
    dsn_database.run(f"DROP TABLE {partition_of(datetime.now(UTC) + timedelta(days=7))}")

    await maintenance.partitions.run_once()

    assert partition_of(datetime.now(UTC) + timedelta(days=7)) in partitions(dsn_database)
    await maintenance.close()


async def test_days_past_retention_are_dropped(dsn_database: QueueDatabase) -> None:
    maintenance = maintenance_on(dsn_database)
    old, older, kept = (make_partition(dsn_database, days) for days in (9, 30, 6))

    await maintenance.expired_partitions.run_once()

    assert old not in partitions(dsn_database)
    assert older not in partitions(dsn_database)
    assert kept in partitions(dsn_database)
    assert dsn_database.all("SELECT FROM pg_class WHERE relname = ANY(%s)", [old, older]) == []
    assert dsn_database.value("SELECT count(*) FROM job_runs") == 1
    await maintenance.close()


async def test_day_on_which_a_running_job_was_claimed_is_kept(dsn_database: QueueDatabase) -> None:
    maintenance = maintenance_on(dsn_database)
    older, old = make_partition(dsn_database, 30), make_partition(dsn_database, 9)
    job_id = dsn_database.put("type")
    dsn_database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'w', claim_token = 1, locked_at = now() - interval '9 days' "
        "WHERE id = %s",
        job_id,
    )

    await maintenance.expired_partitions.run_once()

    assert old in partitions(dsn_database)
    assert older not in partitions(dsn_database)
    await maintenance.close()


async def test_reader_of_an_old_day_postpones_its_drop(
    dsn_database: QueueDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LOCK_LIMIT <= 5.0
    monkeypatch.setattr("pgq_core.maintenance.leadership.LOCK_LIMIT", 0.1)
    maintenance = maintenance_on(dsn_database)
    old = make_partition(dsn_database, 9)

    with psycopg.connect(dsn_database.dsn) as reader:
        reader.execute("SELECT count(*) FROM job_runs")
        await maintenance.expired_partitions.run_once()
        reader.rollback()
    # The interrupted detach is finished by the next turn.
    await maintenance.expired_partitions.run_once()

    assert old not in partitions(dsn_database)
    assert dsn_database.all("SELECT FROM pg_class WHERE relname = %s", old) == []
    await maintenance.close()


async def test_a_day_whose_detach_was_broken_off_takes_runs_again(
    dsn_database: QueueDatabase, stranger: psycopg.Connection
) -> None:
    maintenance, today = maintenance_on(dsn_database), partition_of(datetime.now(UTC))
    stranger.execute("SELECT count(*) FROM job_runs")
    dsn_database.run("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        dsn_database.run(f"ALTER TABLE job_runs DETACH PARTITION {today} CONCURRENTLY")
    stranger.rollback()

    await maintenance.partitions.run_once()

    dsn_database.run("INSERT INTO job_runs (job_id, worker_id, started_at, finished_at) VALUES (1, 'w', now(), now())")
    assert dsn_database.value("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == 0
    await maintenance.close()


async def test_a_day_that_cannot_be_dropped_keeps_no_other(dsn_database: QueueDatabase) -> None:
    maintenance = maintenance_on(dsn_database)
    watched, other = make_partition(dsn_database, 30), make_partition(dsn_database, 20)
    dsn_database.run(f"CREATE VIEW public.mine AS SELECT * FROM {watched}")

    await maintenance.expired_partitions.run_once()

    assert dsn_database.all("SELECT FROM pg_class WHERE relname = %s", other) == []
    assert dsn_database.value("SELECT count(*) FROM public.mine") == 1
    await maintenance.close()


async def test_only_resolved_dead_letters_past_retention_are_deleted(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    database.run(
        """
        INSERT INTO dead_letter_jobs
               (original_job_id, queue, payload, last_error, attempts, died_at, resolution, resolved_at)
        VALUES (1, 'q', '{"type": "t"}', 'e', 1, now() - interval '2 years', NULL, NULL),
               (2, 'q', '{"type": "t"}', 'e', 1, now() - interval '2 years', 'discarded', now() - interval '31 days'),
               (3, 'q', '{"type": "t"}', 'e', 1, now() - interval '2 years', 'replayed', now() - interval '29 days')
        """
    )

    await maintenance.retention.run_once()

    left = database.all("SELECT original_job_id AS id FROM dead_letter_jobs ORDER BY 1")
    assert [row["id"] for row in left] == [1, 3]


async def test_expired_keys_are_deleted_and_live_ones_kept(database: QueueDatabase, maintenance: Maintenance) -> None:
    live = database.put("type", idempotency_key="live")
    ended = database.put("type", idempotency_key="ended")
    database.put("type", idempotency_key="in its window")
    database.run("DELETE FROM jobs WHERE id <> %s", live)
    database.run("UPDATE job_keys SET expires_at = now() - interval '1 s' WHERE job_id = %s", ended)

    await maintenance.retention.run_once()

    keys = [row["key"] for row in database.all("SELECT key FROM job_keys ORDER BY key")]
    assert keys == ["in its window", "live"]


async def test_rows_of_ended_workers_stay_bounded(database: QueueDatabase, maintenance: Maintenance) -> None:
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, stopped_at, heartbeat_at) "
        "SELECT 'ended-' || n, 'h', '{default}', 1, 'stopped', now() - n * interval '1 s', now() "
        "FROM generate_series(1, 700) n"
    )
    database.run("INSERT INTO workers (id, host, queues, concurrency) VALUES ('living', 'h', '{default}', 1)")
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, stopped_at) "
        "VALUES ('ancient', 'h', '{default}', 1, 'stopped', now() - interval '2 days')"
    )
    database.run("INSERT INTO worker_waits VALUES ('living', true), ('ended-1', true), ('nobody', true)")

    await maintenance.retention.run_once()

    assert database.value("SELECT count(*) FROM workers WHERE stopped_at IS NOT NULL") == 500
    assert database.value("SELECT count(*) FROM workers WHERE id IN ('living', 'ended-1')") == 2
    assert database.all("SELECT worker_id FROM worker_waits") == [{"worker_id": "living"}]


async def test_statistics_get_coarser_with_age_and_keep_their_sums(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    database.run(
        """
        INSERT INTO job_stats (bucket, queue, job_type, slot, succeeded, dead, duration_seconds, durations, waits)
        SELECT date_bin('5 seconds', now() - age, '2000-01-01 00:00+00') - n * interval '5 s',
               'q', 't', slot, 2, 1, 0.5,
               array_fill(1::bigint, ARRAY[24]), array_fill(2::bigint, ARRAY[24])
          FROM unnest(ARRAY[interval '10 s', interval '2 h', interval '3 days']) age,
               generate_series(0, 99) n, generate_series(0, 2) slot
        """
    )

    before = database.one("SELECT sum(succeeded) AS s, sum(dead) AS d, sum(durations[3]) AS c FROM job_stats")
    await maintenance.stats_rollup.run_once()
    await maintenance.stats_rollup.run_once()

    after = database.one("SELECT sum(succeeded) AS s, sum(dead) AS d, sum(durations[3]) AS c FROM job_stats")
    assert after == before
    assert database.value("SELECT count(*) FROM job_stats WHERE bucket > now() - interval '1 h'") == 300
    minutes = database.all(
        "SELECT bucket, slot FROM job_stats WHERE bucket BETWEEN now() - interval '1 d' AND now() - interval '90 min'"
    )
    assert 9 <= len(minutes) <= 10
    assert all(row["bucket"].second == 0 and row["slot"] == 0 for row in minutes)
    hours = database.all("SELECT bucket FROM job_stats WHERE bucket < now() - interval '2 days'")
    assert 1 <= len(hours) <= 2
    assert all(row["bucket"].minute == 0 for row in hours)


async def test_key_window_of_the_settings_reaches_the_triggers(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    other = maintenance_on(database, key_window=7)

    await other.key_window.run_once()
    assert database.value("SELECT extract(epoch FROM key_window())::int") == 7

    await other.close()
    await maintenance.key_window.run_once()
    assert database.value("SELECT extract(epoch FROM key_window())::int") == 86400
