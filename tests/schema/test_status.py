"""The status follows from not_before and locked_by, for plain INSERTs and for repairs by hand."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgq_core.queries import Queries
from tests.schema.first_form import claim as first_form_claim
from tests.schema.sessions import Session, row, rows, session, value

QUERIES = Queries("pgq_core")


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def insert(conn: Session, **columns: object) -> int:
    given = {"payload": '{"type": "a"}', **columns}
    places = ", ".join(["%s"] * len(given))
    job = row(conn, f"INSERT INTO jobs ({', '.join(given)}) VALUES ({places}) RETURNING id", *given.values())
    return int(job["id"])


def state(conn: Session, job: int) -> str:
    return str(value(conn, "SELECT status FROM jobs WHERE id = %s", job))


def claim(conn: Session, worker: str = "w") -> list[int]:
    found = QUERIES.claim_jobs(queue="default", worker_id=worker, limit=10, job_types=None, lease=None)
    return [job.id for job in found.fetch_all_sync(conn)]


def test_a_future_job_is_scheduled_and_cannot_be_claimed(conn: Session) -> None:
    job = insert(conn, not_before="2999-01-01")

    assert state(conn, job) == "scheduled"
    assert claim(conn) == []


@pytest.mark.parametrize("given", ["running", "scheduled", "waiting", "done"])
def test_a_status_written_by_hand_gives_way_to_the_row(conn: Session, given: str) -> None:
    assert state(conn, insert(conn, status=given)) == "pending"
    assert state(conn, insert(conn, status=given, not_before="2999-01-01")) == "scheduled"


def test_an_insert_cannot_claim(conn: Session) -> None:
    job = insert(conn, locked_by="me", locked_at="2020-01-01")

    assert row(conn, "SELECT status, locked_by, locked_at FROM jobs WHERE id = %s", job) == {
        "status": "pending",
        "locked_by": None,
        "locked_at": None,
    }


def test_a_running_row_can_be_restored(conn: Session) -> None:
    job = insert(conn, status="running", locked_by="me", locked_at="2020-01-01", claim_token=7)

    assert state(conn, job) == "running"


def test_waiting_needs_something_to_wait_for(conn: Session) -> None:
    job = insert(conn, status="waiting", waiting_for="key:a")
    assert state(conn, job) == "waiting"
    assert claim(conn) == []

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute("UPDATE jobs SET waiting_for = NULL")

    assert refused.value.diag.constraint_name == "job_waits_for_something"


def test_unlocking_a_running_job_by_hand_makes_it_pending(conn: Session) -> None:
    job = insert(conn)
    assert claim(conn) == [job]

    conn.execute("UPDATE jobs SET locked_by = NULL, locked_at = NULL")

    repaired = row(conn, "SELECT status, locked_by, locked_at, lease_until, attempts FROM jobs")
    assert repaired == {"status": "pending", "locked_by": None, "locked_at": None, "lease_until": None, "attempts": 0}
    assert claim(conn) == [job]


def test_unlocking_by_the_owner_alone_is_enough(conn: Session) -> None:
    job = insert(conn)
    claim(conn)

    conn.execute("UPDATE jobs SET locked_by = NULL WHERE id = %s", (job,))

    assert row(conn, "SELECT status, locked_at FROM jobs") == {"status": "pending", "locked_at": None}


def test_unlocking_with_a_later_time_schedules(conn: Session) -> None:
    job = insert(conn)
    claim(conn)

    conn.execute("UPDATE jobs SET locked_by = NULL, locked_at = NULL, not_before = now() + interval '1 hour'")

    assert state(conn, job) == "scheduled"


def test_a_claim_undone_by_hand_keeps_its_old_worker_out(conn: Session) -> None:
    from pgq_core.queries.claims import FinishedJob

    job = insert(conn)
    claim(conn, "first")
    token = value(conn, "SELECT claim_token FROM jobs")
    conn.execute("UPDATE jobs SET locked_by = NULL, locked_at = NULL")
    late = QUERIES.finish_jobs([FinishedJob(job, token, 0.0, 1.0)], worker_id="first", slot=0)

    assert late.fetch_all_sync(conn) == []
    claim(conn, "second")
    assert late.fetch_all_sync(conn) == []
    assert value(conn, "SELECT locked_by FROM jobs") == "second"


def test_bringing_a_scheduled_job_forward_by_hand_makes_it_pending(conn: Session) -> None:
    job = insert(conn, not_before="2999-01-01")

    conn.execute("UPDATE jobs SET not_before = now()")

    assert claim(conn) == [job]


def test_a_scheduled_job_moved_within_the_future_stays_scheduled(conn: Session) -> None:
    job = insert(conn, not_before="2999-01-01")

    conn.execute("UPDATE jobs SET not_before = now() + interval '1 day'")

    assert state(conn, job) == "scheduled"


def test_a_pending_job_pushed_into_the_future_by_hand_is_scheduled(conn: Session) -> None:
    job = insert(conn)

    conn.execute("UPDATE jobs SET not_before = now() + interval '1 hour'")

    assert state(conn, job) == "scheduled"
    assert claim(conn) == []


def test_the_first_form_retry_update_schedules(conn: Session) -> None:
    job = insert(conn)
    claim(conn)

    conn.execute(
        """UPDATE jobs SET attempts = 1, not_before = now() + ('60' || ' seconds')::interval,
                          locked_by = NULL, locked_at = NULL WHERE id = %s""",
        (job,),
    )

    assert state(conn, job) == "scheduled"


def test_a_deleted_job_is_gone(conn: Session) -> None:
    insert(conn)

    conn.execute("DELETE FROM jobs")

    assert claim(conn) == []


def test_a_first_form_claim_is_refused_with_one_sentence(conn: Session) -> None:
    insert(conn)

    with pytest.raises(psycopg.Error) as refused:
        first_form_claim(conn, "old-worker")

    assert refused.value.sqlstate == "PQ001"
    assert refused.value.diag.message_primary is not None
    assert "cannot be claimed without a new claim_token" in refused.value.diag.message_primary
    assert "pgq-core worker" in refused.value.diag.message_primary
    assert rows(conn, "SELECT status, locked_by FROM jobs") == [{"status": "pending", "locked_by": None}]


def test_a_first_form_claim_is_refused_for_a_job_that_ran_before(conn: Session) -> None:
    insert(conn)
    claim(conn)
    conn.execute("UPDATE jobs SET locked_by = NULL, locked_at = NULL")

    with pytest.raises(psycopg.Error, match="claim_token"):
        first_form_claim(conn, "old-worker")


def test_a_claim_in_plain_sql_with_a_new_token_runs(conn: Session) -> None:
    job = insert(conn)

    conn.execute("UPDATE jobs SET locked_by = 'me', claim_token = nextval('claim_token_seq') WHERE id = %s", (job,))

    found = row(conn, "SELECT status, locked_by, locked_at IS NOT NULL AS has_time FROM jobs")
    assert found == {"status": "running", "locked_by": "me", "has_time": True}


def test_a_running_job_set_pending_by_hand_loses_its_owner(conn: Session) -> None:
    insert(conn)
    claim(conn)

    conn.execute("UPDATE jobs SET status = 'pending'")

    assert rows(conn, "SELECT status, locked_by FROM jobs") == [{"status": "pending", "locked_by": None}]


def test_the_plain_row_calls_no_row_trigger(dsn: str) -> None:
    called = """SELECT funcname, calls::int FROM pg_stat_xact_user_functions
                 WHERE funcname LIKE 'jobs_%%' AND funcname <> 'jobs_wake_workers' ORDER BY 1"""
    with session(dsn, autocommit=False) as conn:
        conn.execute("SET LOCAL track_functions = 'all'")
        job = insert(conn)
        assert claim(conn) == [job]
        conn.execute("DELETE FROM jobs")
        assert rows(conn, called) == []

        insert(conn, not_before="2999-01-01")
        assert rows(conn, called) == [{"funcname": "jobs_derive_status", "calls": 1}]
