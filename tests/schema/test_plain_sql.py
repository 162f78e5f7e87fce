"""Plain SQL from any language is a first-class producer: what it may say, and what is refused at the door."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgq_core.migrate import migrate
from tests.schema.sessions import Session, row, rows, session, value

INSERT = "INSERT INTO jobs (payload) VALUES (%s) RETURNING *"


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def test_the_documented_statements_work_as_written(conn: Session) -> None:
    insert = """
        INSERT INTO jobs (queue, payload, idempotency_key)
        VALUES ('default', '{"type": "send_email", "data": {"to": "a@example.org"}}', 'welcome-1')
        ON CONFLICT (idempotency_key) DO NOTHING RETURNING id;"""

    assert rows(conn, insert) == [{"id": 1}]
    assert rows(conn, insert) == []
    jobs = rows(conn, "SELECT id, queue, attempts, not_before, locked_by FROM jobs ORDER BY id;")
    assert [(job["id"], job["queue"], job["attempts"], job["locked_by"]) for job in jobs] == [(1, "default", 0, None)]
    runs = """SELECT job_id, success, error, finished_at - started_at AS duration
                FROM job_runs ORDER BY started_at DESC LIMIT 10;"""
    assert rows(conn, runs) == []
    assert rows(conn, "SELECT * FROM dead_letter_jobs;") == []


def test_the_defaults_of_a_plain_row(conn: Session) -> None:
    job = row(conn, INSERT, '{"type": "send_email"}')

    expected = {
        "queue": "default",
        "job_type": "send_email",
        "priority": 0,
        "status": "pending",
        "attempts": 0,
        "max_attempts": 5,
        "locked_by": None,
        "claim_token": None,
        "timeout": None,
        "losses": 0,
        "suspect": False,
    }
    assert {name: job[name] for name in expected} == expected
    assert job["not_before"] == job["created_at"]


def test_a_session_without_search_path_uses_qualified_names(empty_dsn: str) -> None:
    migrate(empty_dsn, "q x")
    with session(empty_dsn, options="-c search_path=") as conn:
        insert = """INSERT INTO "q x".jobs (payload, idempotency_key, not_before)
                    VALUES ('{"type": "a"}', %s, now() + %s::interval)
                    ON CONFLICT (idempotency_key) DO NOTHING RETURNING id, status"""
        assert rows(conn, insert, "k", "0") == [{"id": 1, "status": "pending"}]
        assert rows(conn, insert, "k", "0") == []
        assert rows(conn, insert, None, "1 hour") == [{"id": 3, "status": "scheduled"}]
        assert value(conn, """SELECT "q x".enqueue('b', '{"n": 1}', idempotency_key => 'other')""") == 4
        assert value(conn, """SELECT "q x".cancel(3)""") == "cancelled"
        conn.execute("""SELECT "q x".pause('default', 'a reason'), "q x".resume('default')""")
        conn.execute("""DELETE FROM "q x".jobs WHERE id = 1""")
        assert rows(conn, insert, "k", "0") == []
        assert value(conn, """SELECT "q x".ensure_run_partitions(current_date + 20, current_date + 21)""") == 2
        assert value(conn, """SELECT count(*) FROM "q x".job_runs""") == 1


@pytest.mark.parametrize(
    "payload",
    [
        "null",
        "[]",
        '[{"type": "a"}]',
        '"a"',
        "7",
        "true",
        "{}",
        '{"data": 1}',
        '{"type": ""}',
        '{"type": null}',
        '{"type": 7}',
        '{"type": ["a"]}',
        '{"type": {"a": 1}}',
    ],
)
def test_a_payload_without_a_type_is_refused_by_name(conn: Session, payload: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute(INSERT, (payload,))

    assert refused.value.diag.constraint_name == "payload_is_an_object_with_a_type"
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_a_payload_of_sql_null_is_refused(conn: Session) -> None:
    with pytest.raises(psycopg.errors.NotNullViolation):
        conn.execute(INSERT, (None,))


@pytest.mark.parametrize("text", ['{"type": "a", "data": "x\\u0000y"}', '{"type": "a", "data": {"k\\u0000": 1}}'])
def test_nul_in_a_payload_is_refused_by_the_server(conn: Session, text: str) -> None:
    with pytest.raises(psycopg.errors.UntranslatableCharacter):
        conn.execute(INSERT, (text,))


@pytest.mark.parametrize("text", ['{"type": "a", "data": NaN}', '{"type": "a", "data": "\\ud800"}', "{"])
def test_what_is_not_json_is_refused_by_the_server(conn: Session, text: str) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        conn.execute(INSERT, (text,))


@pytest.mark.parametrize(
    ("column", "given", "constraint"),
    [
        ("priority", "32768", "job_priority_range"),
        ("priority", "-32769", "job_priority_range"),
        ("attempts", "-1", "job_attempts_range"),
        ("max_attempts", "0", "job_attempts_range"),
        ("queue", "''", "job_queue_has_a_name"),
        ("queue", "repeat('q', 201)", "job_queue_has_a_name"),
        ("not_before", "'infinity'", "job_not_before_is_finite"),
        ("not_before", "'-infinity'", "job_not_before_is_finite"),
        ("not_before", "'20000-01-01'", "job_not_before_is_finite"),
        ("not_before", "'0044-03-15 BC'", "job_not_before_is_finite"),
        ("created_at", "'infinity'", "job_created_at_is_finite"),
        ("timeout", "'-1 s'", "job_timeout_range"),
        ("timeout", "'1000000000 days'", "job_timeout_range"),
        ("idempotency_key", "''", "job_key_length"),
        ("idempotency_key", "repeat('k', 501)", "job_key_length"),
        ("idempotency_key", "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 500) n)", "job_key_length"),
        ("payload", """jsonb_build_object('type', repeat('t', 201))""", "job_type_length"),
    ],
)
def test_values_that_no_worker_could_read_or_count_are_refused_by_name(
    conn: Session, column: str, given: str, constraint: str
) -> None:
    values = {"payload": """'{"type": "a"}'""", column: given}

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute(f"INSERT INTO jobs ({', '.join(values)}) VALUES ({', '.join(values.values())})")

    assert refused.value.diag.constraint_name == constraint


@pytest.mark.parametrize("priority", [-32768, 0, 32767])
def test_the_whole_range_of_priorities_is_accepted(conn: Session, priority: int) -> None:
    statement = "INSERT INTO jobs (payload, priority) VALUES (%s, %s) RETURNING priority"

    assert value(conn, statement, '{"type": "a"}', priority) == priority


def test_the_longest_names_can_be_counted_at_the_end(conn: Session) -> None:
    widest = "\N{GRINNING FACE}" * 200

    job = value(conn, "SELECT enqueue(%s, queue => %s)", widest, widest)

    assert value(conn, "SELECT cancel(%s)", job) == "cancelled"
    assert value(conn, "SELECT sum(cancelled) FROM job_stats WHERE job_type = %s", widest) == 1


def test_ids_are_bigints_and_go_beyond_what_a_double_can_hold(conn: Session) -> None:
    conn.execute("ALTER TABLE jobs ALTER COLUMN id RESTART WITH 9007199254740993")

    job = row(conn, "INSERT INTO jobs (payload, idempotency_key) VALUES ('{\"type\": \"a\"}', 'k') RETURNING id")

    assert job == {"id": 9007199254740993}
    assert value(conn, "SELECT job_id FROM job_keys") == 9007199254740993
    narrow = """SELECT table_name, column_name FROM information_schema.columns
                 WHERE table_schema = 'pgq_core' AND data_type = 'integer'
                   AND (column_name = 'id' OR column_name LIKE '%%\\_id' OR column_name LIKE '%%token')"""
    assert rows(conn, narrow) == []


def test_copy_takes_keys_and_derives_states_like_an_insert(conn: Session) -> None:
    with conn.cursor() as cursor, cursor.copy("COPY jobs (payload, idempotency_key, not_before) FROM STDIN") as copy:
        copy.write_row(('{"type": "a"}', "k", "2020-01-01"))
        copy.write_row(('{"type": "a"}', None, "2999-01-01"))

    assert [job["status"] for job in rows(conn, "SELECT status FROM jobs ORDER BY id")] == ["pending", "scheduled"]
    assert value(conn, "SELECT count(*) FROM job_keys") == 1
