"""Tables of the first form become ours in place, and not one row is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import psycopg
import pytest

from pgq_core.migrate import migrate, run_migrations
from pgq_core.queries import Queries
from pgq_core.queries.claims import FinishedJob
from tests.schema.first_form import FIRST_FORM, claim, enqueue
from tests.schema.sessions import Row, Session, row, rows, session, value
from tests.support.databases import new_database

QUERIES = Queries("public")

JOBS = """
INSERT INTO jobs (payload, idempotency_key, attempts, max_attempts, not_before, locked_by, locked_at, queue) VALUES
    ('{"type": "plain", "data": {"n": 1}}', 'key-1', 0, 5, now(), NULL, NULL, 'default'),
    ('{"type": "later"}', NULL, 0, 5, now() + interval '1 hour', NULL, NULL, 'default'),
    ('{"type": "retrying", "data": 7}', NULL, 3, 5, now() + interval '1 min', NULL, NULL, 'mail'),
    ('{"type": "stale"}', 'key-4', 1, 5, now(), 'dead-host-1', now() - interval '5 min', 'default'),
    ('{"type": "half locked"}', NULL, 0, 5, now(), 'dead-host-1', NULL, 'default'),
    ('{"type": "spent"}', 'key-6', 5, 5, now(), NULL, NULL, 'default'),
    ('{"type": "spent and stale"}', NULL, 7, 3, now(), 'dead-host-2', now() - interval '1 day', 'default'),
    ('[1, 2]', 'key-8', 0, 5, now(), NULL, NULL, 'default'),
    ('null', NULL, 0, 5, now(), NULL, NULL, 'default'),
    ('"text"', NULL, 1, 5, now(), NULL, NULL, 'default'),
    ('{"data": 1}', NULL, 0, 5, now(), NULL, NULL, 'default'),
    ('{"type": 3}', NULL, 0, 5, now(), NULL, NULL, 'default'),
    ('{"type": "never"}', NULL, 0, 5, 'infinity', NULL, NULL, 'default'),
    ('{"type": "always"}', NULL, 0, 5, '-infinity', NULL, NULL, 'default'),
    ('{"type": "nameless"}', NULL, 0, 5, now(), NULL, NULL, ''),
    ('{"type": "no budget"}', NULL, 0, 0, now(), NULL, NULL, 'default'),
    ('{"type": "negative"}', NULL, -2, 5, now(), NULL, NULL, 'default');
INSERT INTO jobs (payload) VALUES (jsonb_build_object('type', repeat('t', 5000)));
INSERT INTO jobs (payload, idempotency_key) VALUES
    ('{"type": "key of nothing"}', ''),
    ('{"type": "key at the limit"}', repeat('k', 500)),
    ('{"type": "key beyond"}', repeat('k', 501)),
    ('{"type": "key far beyond"}', repeat('k', 2000));
UPDATE jobs SET created_at = 'infinity' WHERE payload ->> 'type' = 'negative';
INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, died_at) VALUES
    (900, 'mail', '{"type": "old", "data": {"to": "a@example.org"}}', 'RuntimeError: no', 5, now() - interval '2 days'),
    (901, 'mail', '[]', 'KeyError: type', 5, 'infinity');
INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, success, error) VALUES
    (900, 'w1', now() - interval '3 days', now() - interval '3 days' + interval '1 s', false, 'first'),
    (900, 'w1', now() - interval '2 days', now() - interval '2 days' + interval '1 s', false, 'RuntimeError: no'),
    (800, 'w1', now() - interval '9 days', now() - interval '9 days' + interval '1 s', true, NULL),
    (800, 'w2', now() - interval '9 days', now() - interval '9 days' + interval '1 s', true, NULL),
    (4, 'dead-host-1', now() - interval '6 min', now() - interval '6 min', false, 'boom'),
    (4, 'dead-host-1', now() - interval '5 min', NULL, NULL, NULL),
    (4, 'dead-host-1', now() - interval '5 min', NULL, NULL, NULL),
    (6, 'w3', now() - interval '4 min', now() - interval '4 min', false, 'ValueError: spent'),
    (700, 'w3', '-infinity', 'infinity', true, NULL),
    (701, 'w3', now() + interval '5 years', now() + interval '5 years', NULL, 'from the future');
"""


@contextlib.contextmanager
def first_form(dsn: str) -> Iterator[Session]:
    """A session on tables of the first form with something of everything in them."""
    with session(dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute(JOBS)
        yield conn


@pytest.fixture
def old(empty_dsn: str) -> Iterator[Session]:
    with first_form(empty_dsn) as conn:
        yield conn


@pytest.fixture
def adopted(old: Session, empty_dsn: str) -> Session:
    """For a test that goes on with the adopted tables."""
    migrate(empty_dsn, "public")
    return old


@pytest.fixture(scope="module")
def adopted_once(server_dsn: str) -> Iterator[Session]:
    """For tests that only look."""
    with new_database(server_dsn) as dsn, first_form(dsn) as conn:
        migrate(dsn, "public")
        yield conn


def by_type(conn: Session) -> dict[str, Row]:
    return {job["job_type"]: job for job in rows(conn, "SELECT * FROM jobs")}


def test_no_row_is_lost(old: Session, empty_dsn: str) -> None:
    ids = {job["id"] for job in rows(old, "SELECT id FROM jobs")}
    runs = {run["id"] for run in rows(old, "SELECT id FROM job_runs")}
    letters = {letter["id"] for letter in rows(old, "SELECT id FROM dead_letter_jobs")}

    report = run_migrations(empty_dsn, "public")

    assert report.adopted == ("dead_letter_jobs", "job_runs", "jobs")
    live = {job["id"] for job in rows(old, "SELECT id FROM jobs")}
    dead = {letter["original_job_id"] for letter in rows(old, "SELECT original_job_id FROM dead_letter_jobs")}
    assert live | dead == ids | {900, 901}
    assert live & dead == set()
    assert {run["id"] for run in rows(old, "SELECT id FROM job_runs")} == runs
    assert letters < {letter["id"] for letter in rows(old, "SELECT id FROM dead_letter_jobs")}


def test_healthy_jobs_keep_what_they_said(adopted_once: Session) -> None:
    jobs = by_type(adopted_once)

    assert jobs["plain"]["payload"] == {"type": "plain", "data": {"n": 1}}
    assert (jobs["plain"]["status"], jobs["plain"]["idempotency_key"]) == ("pending", "key-1")
    assert jobs["later"]["status"] == "scheduled"
    assert (jobs["retrying"]["status"], jobs["retrying"]["attempts"]) == ("scheduled", 3)
    assert jobs["retrying"]["queue"] == "mail"
    assert jobs["nameless"]["queue"] == "default"
    assert jobs["negative"]["attempts"] == 0
    assert {job["priority"] for job in jobs.values()} == {0}


def test_stale_locks_are_handed_back(adopted_once: Session) -> None:
    for name in ("stale", "half locked"):
        job = by_type(adopted_once)[name]
        assert (job["status"], job["locked_by"], job["locked_at"]) == ("pending", None, None)
    assert by_type(adopted_once)["stale"]["attempts"] == 1


def test_times_without_end_become_times_that_everybody_can_read(adopted_once: Session) -> None:
    jobs = by_type(adopted_once)

    assert jobs["never"]["status"] == "scheduled"
    assert jobs["never"]["not_before"].year == 9999
    assert jobs["always"]["status"] == "pending"
    bad = """SELECT count(*) FROM {} WHERE NOT isfinite({})"""
    for table, column in [
        ("jobs", "created_at"),
        ("dead_letter_jobs", "died_at"),
        ("job_runs", "started_at"),
        ("job_runs", "finished_at"),
    ]:
        assert value(adopted_once, bad.format(table, column)) == 0


@pytest.mark.parametrize(
    ("payload", "reason", "error"),
    [
        ('{"type": "spent"}', "exhausted", "ValueError: spent"),
        ('{"type": "spent and stale"}', "exhausted", "all 3 attempts were spent before this table was adopted"),
        ('{"type": "no budget"}', "exhausted", "all 0 attempts were spent before this table was adopted"),
        ("[1, 2]", "malformed", "the payload is no object"),
        ("null", "malformed", "the payload is no object"),
        ('"text"', "malformed", "the payload is no object"),
        ('{"data": 1}', "malformed", "the payload is no object"),
        ('{"type": 3}', "malformed", "the payload is no object"),
    ],
)
def test_spent_and_malformed_jobs_become_dead_letters(
    adopted_once: Session, payload: str, reason: str, error: str
) -> None:
    letter = row(adopted_once, "SELECT * FROM dead_jobs WHERE payload = %s", payload)

    assert letter["reason"] == reason
    assert letter["last_error"].startswith(error)
    assert letter["created_at"] is not None


def test_a_type_too_long_to_be_counted_is_malformed(adopted_once: Session) -> None:
    letter = row(adopted_once, "SELECT reason FROM dead_jobs WHERE length(payload ->> 'type') = 5000")

    assert letter == {"reason": "malformed"}


def test_keys_are_filled(adopted_once: Session) -> None:
    keys = rows(
        adopted_once,
        "SELECT key, job_id, expires_at = 'infinity' AS held FROM job_keys WHERE key LIKE 'key-%' ORDER BY key",
    )

    assert keys == [
        {"key": "key-1", "job_id": 1, "held": None},
        {"key": "key-4", "job_id": 4, "held": None},
        {"key": "key-6", "job_id": 6, "held": True},
        {"key": "key-8", "job_id": 8, "held": True},
    ]


def test_keys_of_no_allowed_length_become_none_or_short_and_stay_one_of_a_kind(adopted_once: Session) -> None:
    jobs = by_type(adopted_once)

    assert jobs["key of nothing"]["idempotency_key"] is None
    assert jobs["key at the limit"]["idempotency_key"] == "k" * 500
    short = [jobs[name]["idempotency_key"] for name in ("key beyond", "key far beyond")]
    assert short == [f"{'k' * 460}...{md5(b'k' * length).hexdigest()}" for length in (501, 2000)]
    for name in ("key at the limit", "key beyond", "key far beyond"):
        taken = value(adopted_once, "SELECT job_id FROM job_keys WHERE key = %s", jobs[name]["idempotency_key"])
        assert taken == jobs[name]["id"]


def test_runs_are_numbered_closed_and_told_apart(adopted_once: Session) -> None:
    runs = rows(
        adopted_once,
        """SELECT job_id, attempt, outcome, success, error, finished_at IS NOT NULL AS is_closed
             FROM job_runs WHERE job_id IN (4, 6, 800, 900) ORDER BY job_id, attempt""",
    )

    lost = "lost: worker dead-host-1 never ended this run"
    assert [tuple(run.values()) for run in runs] == [
        (4, 1, "retried", False, "boom", True),
        (4, 2, "lost", False, lost, True),
        (4, 3, "lost", False, lost, True),
        (6, 1, "dead", False, "ValueError: spent", True),
        (800, 1, "succeeded", True, None, True),
        (800, 2, "succeeded", True, None, True),
        (900, 1, "retried", False, "first", True),
        (900, 2, "dead", False, "RuntimeError: no", True),
    ]


def test_a_dead_letter_keeps_the_story_of_its_attempts(adopted_once: Session) -> None:
    story = row(adopted_once, "SELECT attempt_log, origin_job_id FROM dead_letter_jobs WHERE original_job_id = 900")

    assert story["origin_job_id"] == 900
    assert [(entry["attempt"], entry["outcome"], entry["error"]) for entry in story["attempt_log"]] == [
        (1, "retried", "first"),
        (2, "dead", "RuntimeError: no"),
    ]
    assert value(adopted_once, "SELECT attempt_log FROM dead_letter_jobs WHERE original_job_id = 901") == []


def test_the_old_table_of_runs_is_the_oldest_partition(adopted_once: Session) -> None:
    partitions = rows(
        adopted_once,
        """SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
             FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'job_runs'::regclass ORDER BY c.relname DESC""",
    )

    assert partitions[0]["name"] == "job_runs_adopted"
    assert partitions[0]["bounds"].startswith("FOR VALUES FROM (MINVALUE) TO (")
    assert len(partitions) == 8  # today's runs go into the old table, seven days ahead have their own
    assert value(adopted_once, "SELECT count(*) FROM job_runs WHERE started_at > now() + interval '1 day'") == 0
    ensured = (
        "SELECT ensure_run_partitions((now() AT TIME ZONE 'UTC')::date - 30, (now() AT TIME ZONE 'UTC')::date + 7)"
    )
    assert value(adopted_once, ensured) == 0


def test_old_runs_can_be_dropped_once_their_time_has_come(adopted: Session) -> None:
    assert value(adopted, "SELECT drop_run_partition('2999-01-01')") is None
    adopted.execute("UPDATE parameters SET value = '2020-01-02' WHERE name = 'runs_adopted_until'")

    assert value(adopted, "SELECT drop_run_partition('2020-01-02')") == "job_runs_adopted"

    assert value(adopted, "SELECT ensure_run_partitions('2020-01-01', '2020-01-01')") == 1


def test_sequences_go_on(old: Session, empty_dsn: str) -> None:
    for sequence, last in [("jobs_id_seq", 5000), ("job_runs_id_seq", 6000), ("dead_letter_jobs_id_seq", 7000)]:
        old.execute("SELECT setval(%s, %s)", (sequence, last))
    migrate(empty_dsn, "public")

    assert enqueue(old, "new", {}) == 5001
    run = """INSERT INTO job_runs (job_id, worker_id, started_at, finished_at)
             VALUES (1, 'w', now(), now()) RETURNING id"""
    assert value(old, run) == 6001
    newest = "SELECT id FROM dead_letter_jobs WHERE reason = 'malformed' ORDER BY id LIMIT 1"
    assert value(old, newest) > 7000
    letter = """INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
                VALUES (1, 'q', '{"type": "a"}', 'no', 1) RETURNING id"""
    assert value(old, letter) == 1 + value(old, "SELECT max(id) FROM dead_letter_jobs WHERE reason = 'malformed'")


def test_no_id_of_any_table_is_given_out_again(old: Session, empty_dsn: str) -> None:
    old.execute("SELECT setval('jobs_id_seq', 1)")
    migrate(empty_dsn, "public")

    assert enqueue(old, "new", {}) == 902


def test_an_empty_first_form_starts_at_one(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        migrate(empty_dsn, "public")

        assert enqueue(conn, "new", {}) == 1
        assert value(conn, "SELECT to_regclass('job_runs_adopted')") is None


def test_a_schema_that_holds_only_some_of_the_tables_is_adopted_too(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute("DROP TABLE job_runs; DROP TABLE dead_letter_jobs")
        enqueue(conn, "a", {})

        assert run_migrations(empty_dsn, "public").adopted == ("jobs",)

        assert value(conn, "SELECT count(*) FROM jobs") == 1


def test_the_first_form_producer_runs_unchanged(adopted: Session) -> None:
    first = enqueue(adopted, "send_email", {"to": "a@example.org", "subject": "Welcome!"}, "welcome-12345")

    assert first > 0
    assert enqueue(adopted, "send_email", {"to": "a@example.org", "subject": "Welcome!"}, "welcome-12345") == -1
    assert enqueue(adopted, "old key", {}, "key-1") == -1
    assert enqueue(adopted, "key of a dead letter", {}, "key-6") == -1


def test_the_first_form_worker_is_refused_from_now_on(adopted: Session) -> None:
    with pytest.raises(psycopg.Error, match="claim_token") as refused:
        claim(adopted, "old-host-1")

    assert refused.value.sqlstate == "PQ001"
    assert value(adopted, "SELECT count(*) FROM jobs WHERE locked_by IS NOT NULL") == 0


def test_our_worker_goes_on_with_the_adopted_jobs(adopted: Session) -> None:
    claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=100, job_types=None, lease=None)
    jobs = claimed.fetch_all_sync(adopted)

    types = {job.job_type for job in jobs}
    keys = {"key of nothing", "key at the limit", "key beyond", "key far beyond"}
    assert types == {"plain", "stale", "half locked", "always", "nameless", "negative"} | keys
    now: Any = value(adopted, "SELECT extract(epoch FROM now())::float8")
    done = [FinishedJob(job.id, job.claim_token, now, now) for job in jobs]
    assert len(QUERIES.finish_jobs(done, worker_id="w", slot=0).fetch_all_sync(adopted)) == len(jobs)
    assert value(adopted, "SELECT attempt FROM job_runs WHERE job_id = 4 AND success") == 2


def test_views_and_grants_of_others_survive(old: Session, empty_dsn: str) -> None:
    old.execute("CREATE VIEW report AS SELECT queue, count(*) AS jobs FROM jobs GROUP BY queue")
    old.execute("GRANT SELECT ON jobs TO PUBLIC")

    migrate(empty_dsn, "public")

    assert value(old, "SELECT sum(jobs) FROM report") == value(old, "SELECT count(*) FROM jobs")
    assert value(old, "SELECT has_table_privilege('public', 'jobs', 'SELECT')")


@pytest.mark.slow
@pytest.mark.system
def test_two_hundred_thousand_runs_are_adopted_in_one_go(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute(
            """INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, success, error)
               SELECT n / 4, 'w' || n % 7, now() - interval '200 days' + n * interval '1 min',
                      now() - interval '200 days' + n * interval '1 min', n % 4 = 3, CASE WHEN n % 4 < 3 THEN 'boom' END
                 FROM generate_series(1, 200000) n;
               INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
               SELECT n * 10, 'q', '{"type": "a"}', 'boom', 5 FROM generate_series(1, 5000) n;
               INSERT INTO jobs (payload, attempts)
               SELECT '{"type": "a"}', n % 6 FROM generate_series(1, 10000) n"""
        )

        migrate(empty_dsn, "public")

        assert value(conn, "SELECT count(*) FROM job_runs") == 200000
        assert value(conn, "SELECT max(attempt) FROM job_runs") == 4
