"""Partitions of job_runs: made beside the table and attached, dropped by day, none for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgq_core.queries import Queries
from pgq_core.queries.claims import FinishedJob
from tests.schema.sessions import InBackground, Session, rows, session, value, wait_until_blocked

QUERIES = Queries("pgq_core")
ENSURE = "SELECT ensure_run_partitions(%s::date, %s::date)"
RUN = """INSERT INTO job_runs (job_id, worker_id, started_at, finished_at) VALUES (1, 'w', %s, %s)
         RETURNING tableoid::regclass::text"""


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def partitions(conn: Session) -> list[str]:
    found = rows(
        conn,
        """SELECT inhrelid::regclass::text AS name FROM pg_inherits
            WHERE inhparent = 'job_runs'::regclass ORDER BY 1""",
    )
    return [partition["name"] for partition in found]


def day(conn: Session, offset: int) -> datetime:
    today: datetime = value(conn, "SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'")
    return today + timedelta(days=offset)


def name(moment: datetime) -> str:
    return f"job_runs_{moment.astimezone(UTC):%Y%m%d}"


def start_a_job(conn: Session) -> tuple[int, int]:
    conn.execute("SELECT enqueue('a')")
    claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
    (job,) = claimed.fetch_all_sync(conn)
    return job.id, job.claim_token


def finish(conn: Session, job: tuple[int, int], started: datetime) -> list[int]:
    at = started.timestamp()
    return QUERIES.finish_jobs([FinishedJob(*job, at, at + 1)], worker_id="w", slot=0).fetch_all_sync(conn)


def test_a_week_ahead_is_there_and_nothing_for_all_the_rest(conn: Session) -> None:
    assert partitions(conn) == [name(day(conn, offset)) for offset in range(-1, 8)]
    assert value(conn, "SELECT partdefid FROM pg_partitioned_table WHERE partrelid = 'job_runs'::regclass") == 0


def test_days_are_days_of_utc_whatever_the_session_thinks(dsn: str, conn: Session) -> None:
    options = "-c timezone=Pacific/Kiritimati -c datestyle=German"
    with session(dsn, options=options) as far:
        assert value(far, ENSURE, "01.03.2031", "02.03.2031") == 2

    assert value(conn, RUN, "2031-03-01 00:00+00", "2031-03-01 00:00+00") == "job_runs_20310301"
    assert value(conn, RUN, "2031-03-02 23:59:59.999999+00", "2031-03-03 00:00+00") == "job_runs_20310302"
    with pytest.raises(psycopg.errors.CheckViolation):
        conn.execute(RUN, ("2031-03-03 00:00+00", "2031-03-03 00:00+00"))


def test_making_a_day_twice_makes_it_once(conn: Session) -> None:
    assert value(conn, ENSURE, "2031-03-01", "2031-03-03") == 3
    assert value(conn, ENSURE, "2031-03-01", "2031-03-03") == 0


def test_a_made_partition_that_was_never_attached_is_attached(conn: Session) -> None:
    conn.execute("CREATE TABLE job_runs_20310301 (LIKE job_runs INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")

    assert value(conn, ENSURE, "2031-03-01", "2031-03-01") == 1
    assert "job_runs_20310301" in partitions(conn)


def test_one_call_makes_two_months_at_the_most(conn: Session) -> None:
    assert value(conn, ENSURE, "2031-01-01", "2040-01-01") == 61


@pytest.mark.parametrize("bound", ["infinity", "-infinity", None])
def test_days_without_end_are_refused(conn: Session, bound: str | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute(ENSURE, (bound, "2031-01-01"))
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute(ENSURE, ("2031-01-01", bound))


def test_a_finish_without_a_partition_says_so_loses_nothing_and_can_be_repeated(conn: Session) -> None:
    job = start_a_job(conn)
    started = datetime(2031, 3, 1, 12, tzinfo=UTC)

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        finish(conn, job, started)

    assert refused.value.sqlstate == "23514"
    assert value(conn, "SELECT status FROM jobs") == "running"
    conn.execute(ENSURE, (started.date(), started.date()))
    assert finish(conn, job, started) == [job[0]]


def test_a_long_reader_blocks_neither_the_new_partition_nor_a_finish(dsn: str, conn: Session) -> None:
    job = start_a_job(conn)
    with session(dsn, autocommit=False) as reader, session(dsn, autocommit=False) as maker:
        reader.execute("SELECT count(*) FROM job_runs")
        maker.execute("SET LOCAL lock_timeout = '2s'")
        assert value(maker, ENSURE, "2031-03-01", "2031-03-01") == 1
        conn.execute("SET lock_timeout = '2s'")

        assert finish(conn, job, day(conn, 0)) == [job[0]]

        maker.commit()
    assert "job_runs_20310301" in partitions(conn)


def test_two_makers_of_one_day_wait_for_each_other(dsn: str, conn: Session) -> None:
    with session(dsn, autocommit=False) as first, session(dsn) as second:
        assert value(first, ENSURE, "2031-03-01", "2031-03-01") == 1
        waiting = InBackground(lambda: value(second, ENSURE, "2031-03-01", "2031-03-01"))
        wait_until_blocked(conn, second)
        first.commit()

        assert waiting.result() == 0


def test_the_oldest_day_is_dropped_first_and_one_at_a_time(conn: Session) -> None:
    conn.execute(ENSURE, ("2020-01-01", "2020-01-03"))

    assert [value(conn, "SELECT drop_run_partition('2020-01-03')") for _ in range(3)] == [
        "job_runs_20200101",
        "job_runs_20200102",
        None,
    ]
    assert "job_runs_20200103" in partitions(conn)


def test_today_and_yesterday_are_never_dropped(conn: Session) -> None:
    assert value(conn, "SELECT drop_run_partition('2999-01-01')") is None


def test_a_day_in_which_a_running_job_started_is_kept(conn: Session) -> None:
    conn.execute(ENSURE, ("2020-01-01", "2020-01-02"))
    start_a_job(conn)
    conn.execute("UPDATE jobs SET locked_at = '2020-01-02 12:00+00'")

    assert value(conn, "SELECT drop_run_partition('2020-02-01')") == "job_runs_20200101"
    assert value(conn, "SELECT drop_run_partition('2020-02-01')") is None


def test_a_drop_does_not_queue_up_behind_a_long_reader(dsn: str, conn: Session) -> None:
    conn.execute(ENSURE, ("2020-01-01", "2020-01-01"))
    with session(dsn, autocommit=False) as reader:
        reader.execute("SELECT count(*) FROM job_runs")

        with pytest.raises(psycopg.errors.LockNotAvailable):
            conn.execute("SELECT drop_run_partition('2020-02-01')")

    assert value(conn, "SELECT drop_run_partition('2020-02-01')") == "job_runs_20200101"
