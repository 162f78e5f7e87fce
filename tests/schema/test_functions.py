"""Functions for callers that know only SQL."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob
from tests.schema.sessions import InBackground, Session, row, rows, session, value, wait_until_blocked

QUERIES = Queries("pgq_core")


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def bury(conn: Session, **columns: object) -> int:
    """A dead letter made the way a worker makes it."""
    given = {"payload": '{"type": "a", "data": {"n": 1}}', **columns}
    places = ", ".join(["%s"] * len(given))
    conn.execute(f"INSERT INTO jobs ({', '.join(given)}) VALUES ({places})", list(given.values()))
    claimed = QUERIES.claim_jobs(
        queue=str(columns.get("queue", "default")), worker_id="w", limit=1, job_types=None, lease=None
    )
    (job,) = claimed.fetch_all_sync(conn)
    dead = BuriedJob(job.id, job.claim_token, "w", None, None, reason="non_retryable", charge=1, error="no")
    (letter,) = QUERIES.bury_jobs([dead], slot=0).fetch_all_sync(conn)
    return letter.dead_letter_id


# enqueue


def test_enqueue_writes_what_it_is_told(conn: Session) -> None:
    job = value(
        conn,
        """SELECT enqueue('bill', '{"customer": 7}', queue => 'billing', priority => 9, not_before => '2999-01-01',
                          idempotency_key => 'bill-7', max_attempts => 3)""",
    )

    found = row(conn, "SELECT * FROM jobs WHERE id = %s", job)
    assert found["payload"] == {"type": "bill", "data": {"customer": 7}}
    assert (found["queue"], found["priority"], found["max_attempts"]) == ("billing", 9, 3)
    assert (found["status"], found["idempotency_key"]) == ("scheduled", "bill-7")


def test_enqueue_needs_only_a_type(conn: Session) -> None:
    conn.execute("SELECT enqueue('ping'), enqueue('ping', NULL, NULL, NULL, NULL, NULL, NULL)")

    found = rows(conn, "SELECT payload, queue, priority, max_attempts, status FROM jobs ORDER BY id")
    expected = {
        "payload": {"type": "ping", "data": {}},
        "queue": "default",
        "priority": 0,
        "max_attempts": 5,
        "status": "pending",
    }
    assert found == [expected, expected]


def test_what_workers_announced_is_the_default_and_the_caller_wins(conn: Session) -> None:
    conn.execute(
        "INSERT INTO job_types (name, queue, max_attempts, timeout) VALUES ('bill', 'billing', 8, '30 seconds')"
    )

    conn.execute("SELECT enqueue('bill'), enqueue('bill', queue => 'vip', max_attempts => 2)")

    found = rows(conn, "SELECT queue, max_attempts, extract(epoch FROM timeout)::int AS timeout FROM jobs ORDER BY id")
    assert found == [
        {"queue": "billing", "max_attempts": 8, "timeout": 30},
        {"queue": "vip", "max_attempts": 2, "timeout": 30},
    ]


def test_a_duplicate_answers_the_id_of_the_first_whatever_its_spelling(conn: Session) -> None:
    first = value(conn, """SELECT enqueue('a', '{"x": 1, "y": [1, 2]}', idempotency_key => 'k')""")

    assert value(conn, """SELECT enqueue('a', '{"y":[1,2],  "x":1}', idempotency_key => 'k')""") == first
    conn.execute("DELETE FROM jobs")
    assert value(conn, """SELECT enqueue('a', '{"x": 1, "y": [1, 2]}', idempotency_key => 'k')""") == first


@pytest.mark.parametrize(
    "call",
    [
        """enqueue('a', '{"x": 2}', idempotency_key => 'k')""",
        """enqueue('b', '{"x": 1}', idempotency_key => 'k')""",
        """enqueue('a', '{"x": 1}', queue => 'other', idempotency_key => 'k')""",
    ],
)
def test_the_same_key_with_another_body_is_a_conflict_that_names_the_job(conn: Session, call: str) -> None:
    first = value(conn, """SELECT enqueue('a', '{"x": 1}', idempotency_key => 'k')""")

    with pytest.raises(psycopg.Error, match=f"belongs to job {first} with another payload or queue") as refused:
        conn.execute(f"SELECT {call}")

    assert refused.value.sqlstate == "PQ002"
    assert refused.value.diag.message_detail == str(first)


def test_enqueue_joins_the_callers_transaction(dsn: str, conn: Session) -> None:
    with session(dsn, autocommit=False) as caller:
        caller.execute("SELECT enqueue('a', idempotency_key => 'k')")
        caller.rollback()

    assert value(conn, "SELECT count(*) FROM jobs") == 0
    assert value(conn, "SELECT count(*) FROM job_keys") == 0


def test_sixty_four_rounds_of_one_key_while_its_holder_comes_and_goes(dsn: str, conn: Session) -> None:
    conn.execute("UPDATE parameters SET value = '0' WHERE name = 'key_window'")

    def produce() -> set[int]:
        with session(dsn) as producer:
            return {value(producer, "SELECT enqueue('a', idempotency_key => 'k')") for _ in range(100)}

    producers = [InBackground(produce) for _ in range(4)]
    for _ in range(200):
        conn.execute("DELETE FROM jobs WHERE idempotency_key = 'k'")
    answered = set[int]().union(*(producer.result() for producer in producers))

    assert None not in answered
    assert value(conn, "SELECT count(*) FROM jobs WHERE idempotency_key = 'k'") <= 1
    assert max(answered) <= value(conn, "SELECT last_value FROM jobs_id_seq")


# replay and discard


def test_a_replay_has_a_fresh_budget_and_both_rows_point_at_each_other(conn: Session) -> None:
    letter = bury(conn, queue="q", priority=7, max_attempts=2, timeout="30 s")

    job = value(conn, "SELECT replay(%s)", letter)

    found = row(conn, "SELECT * FROM jobs")
    assert (found["id"], found["replayed_from"], found["origin_job_id"]) == (job, letter, 1)
    assert (found["attempts"], found["max_attempts"], found["priority"], found["queue"]) == (0, 2, 7, "q")
    assert found["payload"] == {"type": "a", "data": {"n": 1}}
    resolved = row(conn, "SELECT resolution, replayed_job_id, resolved_by FROM dead_letter_jobs")
    assert resolved == {"resolution": "replayed", "replayed_job_id": job, "resolved_by": conn.info.user}
    assert rows(conn, "SELECT id FROM dead_jobs") == []
    audit = row(conn, "SELECT action, target, affected, undo FROM operations")
    assert audit["action"] == "replay"
    assert audit["undo"] == {"dead_letter_ids": [letter]}


def test_a_replay_of_a_replay_keeps_the_first_origin(conn: Session) -> None:
    conn.execute("SELECT replay(%s)", (bury(conn),))
    claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
    (job,) = claimed.fetch_all_sync(conn)
    dead = BuriedJob(job.id, job.claim_token, "w", None, None, reason="non_retryable", charge=1, error="no")
    (second,) = QUERIES.bury_jobs([dead], slot=0).fetch_all_sync(conn)

    conn.execute("SELECT replay(%s)", (second.dead_letter_id,))

    assert value(conn, "SELECT origin_job_id FROM jobs") == 1


def test_replays_are_spread_over_the_wished_time(conn: Session) -> None:
    letters = [bury(conn) for _ in range(4)]

    conn.execute("SELECT * FROM replay_dead_letters(%s, 'somebody', '1 hour')", (letters,))

    offsets = rows(conn, "SELECT extract(epoch FROM not_before - created_at)::int AS after FROM jobs ORDER BY id")
    assert [job["after"] for job in offsets] == [0, 900, 1800, 2700]
    assert value(conn, "SELECT count(*) FROM jobs WHERE status = 'scheduled'") == 3


def test_bulk_verbs_answer_per_row(conn: Session) -> None:
    good, bad, gone = bury(conn), bury(conn), bury(conn)
    conn.execute("UPDATE dead_letter_jobs SET payload = '[]' WHERE id = %s", (bad,))
    conn.execute("SELECT discard(%s)", (gone,))

    answers = rows(conn, "SELECT * FROM replay_dead_letters(%s)", [good, bad, gone, 999])

    assert [answer["dead_letter_id"] for answer in answers] == [good, bad, gone]
    assert answers[0]["refusal"] is None
    assert answers[0]["job_id"] is not None
    assert "edit it first" in answers[1]["refusal"]
    assert answers[2]["refusal"] == f"already discarded by {conn.info.user}"
    assert [answer["job_id"] for answer in answers[1:]] == [None, None]


def test_what_is_resolved_or_unknown_is_refused(conn: Session) -> None:
    letter = bury(conn)
    conn.execute("SELECT discard(%s)", (letter,))

    for statement, reason in [
        (f"SELECT replay({letter})", f"dead letter {letter} was not replayed: already discarded"),
        (f"SELECT discard({letter})", f"dead letter {letter} was not discarded: already discarded"),
        ("SELECT replay(999)", "there is no dead letter 999"),
        ("SELECT discard(999)", "there is no dead letter 999"),
    ]:
        with pytest.raises(psycopg.Error, match=reason) as refused:
            conn.execute(statement)
        assert refused.value.sqlstate == "PQ004"


def test_two_operators_who_replay_the_same_letter_make_one_job(dsn: str, conn: Session) -> None:
    letter = bury(conn)
    with session(dsn, autocommit=False) as first, session(dsn) as second:
        first.execute("SELECT replay(%s)", (letter,))
        waiting = InBackground(lambda: row(second, "SELECT * FROM replay_dead_letters(ARRAY[%s::bigint])", letter))
        wait_until_blocked(conn, second)
        first.commit()

        assert waiting.result()["refusal"].startswith("already replayed")
    assert value(conn, "SELECT count(*) FROM jobs") == 1


def test_undo_is_refused_for_an_unresolved_letter(conn: Session) -> None:
    answer = row(conn, "SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", bury(conn))

    assert answer["refusal"] == "it is unresolved already"


# cancel


def test_a_job_that_does_not_run_is_cancelled_counted_and_recorded(conn: Session) -> None:
    job = value(conn, "SELECT enqueue('a', queue => 'q', not_before => '2999-01-01')")

    assert value(conn, "SELECT cancel(%s)", job) == "cancelled"

    assert value(conn, "SELECT count(*) FROM jobs") == 0
    run = row(conn, "SELECT job_id, attempt, outcome, success, error, queue, job_type FROM job_runs")
    assert run == {
        "job_id": job,
        "attempt": 0,
        "outcome": "cancelled",
        "success": None,
        "error": f"cancelled by {conn.info.user}",
        "queue": "q",
        "job_type": "a",
    }
    counted = row(conn, "SELECT queue, job_type, cancelled, succeeded, duration_seconds FROM job_stats")
    assert counted == {"queue": "q", "job_type": "a", "cancelled": 1, "succeeded": 0, "duration_seconds": 0}


def test_cancelled_jobs_of_one_moment_are_summed(conn: Session) -> None:
    conn.execute("SELECT enqueue('a') FROM generate_series(1, 5)")

    conn.execute("SELECT cancel(id) FROM jobs")

    assert value(conn, "SELECT sum(cancelled) FROM job_stats") == 5


def test_a_running_job_is_asked_to_stop_and_the_workers_are_told(dsn: str, conn: Session) -> None:
    job = value(conn, "SELECT enqueue('a')")
    QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None).fetch_all_sync(conn)
    with session(dsn) as listener:
        listener.execute(f"LISTEN {value(conn, 'SELECT wake_channel()')}")

        assert value(conn, "SELECT cancel(%s)", job) == "requested"

        (notice,) = listener.notifies(timeout=60, stop_after=1)
        assert notice.payload == "cancel"
    assert rows(conn, "SELECT status, cancel_requested FROM jobs") == [{"status": "running", "cancel_requested": True}]


def test_an_ended_or_unknown_job_is_not_found(conn: Session) -> None:
    job = value(conn, "SELECT enqueue('a')")
    conn.execute("SELECT cancel(%s)", (job,))

    assert value(conn, "SELECT cancel(%s)", job) == "not found"
    assert value(conn, "SELECT cancel(999)") == "not found"


def test_a_job_that_changes_sides_under_a_cancel_is_not_missed(dsn: str, conn: Session) -> None:
    job = value(conn, "SELECT enqueue('a')")
    with session(dsn, autocommit=False) as worker, session(dsn) as operator:
        claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
        claimed.fetch_all_sync(worker)
        waiting = InBackground(lambda: value(operator, "SELECT cancel(%s)", job))
        wait_until_blocked(conn, operator)
        worker.commit()

        assert waiting.result() == "requested"


def test_cancel_makes_the_days_partition_when_it_is_missing(conn: Session) -> None:
    today = value(conn, "SELECT 'job_runs_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    conn.execute(f"DROP TABLE {today}")

    assert value(conn, "SELECT cancel(enqueue('a'))") == "cancelled"
    assert value(conn, "SELECT tableoid::regclass::text FROM job_runs") == today


# pause and resume


def test_a_paused_queue_gives_no_jobs_until_it_is_resumed(conn: Session) -> None:
    job = value(conn, "SELECT enqueue('a', queue => 'q')")
    claim = QUERIES.claim_jobs(queue="q", worker_id="w", limit=1, job_types=None, lease=None)

    conn.execute("SELECT pause('q', 'the mail server is down')")

    assert claim.fetch_all_sync(conn) == []
    paused = row(conn, "SELECT paused, paused_by, pause_reason, paused_at IS NOT NULL AS since FROM queues")
    assert paused == {
        "paused": True,
        "paused_by": conn.info.user,
        "pause_reason": "the mail server is down",
        "since": True,
    }
    conn.execute("SELECT resume('q')")
    assert [claimed.id for claimed in claim.fetch_all_sync(conn)] == [job]
    resumed = row(conn, "SELECT paused, paused_by, pause_reason, paused_at FROM queues")
    assert resumed == {"paused": False, "paused_by": None, "pause_reason": None, "paused_at": None}


def test_pausing_twice_keeps_the_first_time(conn: Session) -> None:
    conn.execute("SELECT pause('q')")
    since = value(conn, "SELECT paused_at FROM queues")

    conn.execute("SELECT pause('q', 'still down')")

    assert row(conn, "SELECT paused_at, pause_reason FROM queues") == {"paused_at": since, "pause_reason": "still down"}


def test_resuming_what_was_never_paused_does_nothing(conn: Session) -> None:
    conn.execute("SELECT resume('q')")

    assert value(conn, "SELECT count(*) FROM queues") == 0
