"""Idempotency keys: unique among live jobs, and taken for a window after the job ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import psycopg
import pytest

from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob, FinishedJob
from tests.schema.sessions import InBackground, Row, Session, row, rows, session, value, wait_until_blocked

QUERIES = Queries("pgq_core")
INSERT = "INSERT INTO jobs (payload, idempotency_key) VALUES (%s, %s) "
OR_NOTHING = INSERT + "ON CONFLICT (idempotency_key) DO NOTHING RETURNING id"


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def add(conn: Session, key: str | None = "k", payload: str = '{"type": "a"}') -> int | None:
    """The id, or None where the key was taken."""
    found = rows(conn, OR_NOTHING, payload, key)
    return found[0]["id"] if found else None


def claim(conn: Session) -> tuple[int, int]:
    claimed = QUERIES.claim_jobs(queue="default", worker_id="w", limit=1, job_types=None, lease=None)
    (job,) = claimed.fetch_all_sync(conn)
    return job.id, job.claim_token


def finish(conn: Session) -> int:
    job, token = claim(conn)
    now = time.time()
    QUERIES.finish_jobs([FinishedJob(job, token, now, now)], worker_id="w", slot=0).fetch_all_sync(conn)
    return job


def bury(conn: Session) -> int:
    job, token = claim(conn)
    buried = BuriedJob(job, token, "w", None, None, reason="non_retryable", charge=1, error="no")
    (letter,) = QUERIES.bury_jobs([buried], slot=0).fetch_all_sync(conn)
    return letter.dead_letter_id


def key(conn: Session, name: str = "k") -> Row:
    return row(
        conn,
        """SELECT job_id, CASE WHEN expires_at IS NULL THEN 'live' WHEN expires_at = 'infinity' THEN 'held'
                               WHEN expires_at > now() + interval '23 hours' THEN 'window'
                               WHEN expires_at <= now() THEN 'free' ELSE 'other' END AS state
             FROM job_keys WHERE key = %s""",
        name,
    )


def expire(conn: Session) -> None:
    conn.execute("UPDATE job_keys SET expires_at = now() - interval '1 second' WHERE expires_at IS NOT NULL")


def test_a_first_insert_gets_an_id_then_nothing(conn: Session) -> None:
    assert add(conn) == 1
    assert add(conn) is None
    assert key(conn) == {"job_id": 1, "state": "live"}


def test_a_live_key_without_on_conflict_is_a_unique_violation(conn: Session) -> None:
    add(conn)

    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        conn.execute(INSERT, ('{"type": "a"}', "k"))

    assert refused.value.diag.constraint_name == "jobs_idempotency_key_key"


@pytest.mark.parametrize("end", ["finish", "delete", "cancel", "truncate"])
def test_the_key_of_an_ended_job_inserts_nothing_and_raises_nothing(conn: Session, end: str) -> None:
    add(conn)
    match end:
        case "finish":
            finish(conn)
        case "delete":
            conn.execute("DELETE FROM jobs")
        case "cancel":
            conn.execute("SELECT cancel(1)")
        case "truncate":
            conn.execute("TRUNCATE jobs")

    assert key(conn) == {"job_id": 1, "state": "window"}
    assert add(conn) is None
    assert conn.execute(INSERT, ('{"type": "a"}', "k")).rowcount == 0
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_an_expired_key_is_taken_over(conn: Session) -> None:
    add(conn)
    finish(conn)
    expire(conn)

    second = add(conn)

    assert second is not None
    assert key(conn) == {"job_id": second, "state": "live"}


def test_the_window_is_a_parameter(conn: Session) -> None:
    conn.execute("UPDATE parameters SET value = '0' WHERE name = 'key_window'")
    add(conn)
    finish(conn)

    assert add(conn) is not None


def test_an_unresolved_dead_letter_holds_its_key_beyond_the_window(conn: Session) -> None:
    add(conn)
    bury(conn)
    expire_finite = "UPDATE job_keys SET expires_at = now() - interval '1 s' WHERE expires_at < 'infinity'"
    conn.execute(expire_finite)

    assert key(conn) == {"job_id": 1, "state": "held"}
    assert add(conn) is None


def test_a_discard_frees_the_key_after_the_window(conn: Session) -> None:
    add(conn)
    letter = bury(conn)

    conn.execute("SELECT discard(%s)", (letter,))

    assert key(conn) == {"job_id": 1, "state": "window"}
    assert add(conn) is None
    expire(conn)
    assert add(conn) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dead_letter_jobs SET resolution = 'discarded', resolved_at = now()",
        "DELETE FROM dead_letter_jobs",
        "TRUNCATE dead_letter_jobs",
    ],
)
def test_a_dead_letter_resolved_or_deleted_by_hand_starts_the_window(conn: Session, statement: str) -> None:
    add(conn)
    bury(conn)

    conn.execute(statement)

    assert key(conn) == {"job_id": 1, "state": "window"}


def test_a_replay_hands_the_key_on_to_its_follow_up(conn: Session) -> None:
    add(conn)
    letter = bury(conn)

    follow_up = value(conn, "SELECT replay(%s)", letter)

    assert key(conn) == {"job_id": follow_up, "state": "live"}
    assert value(conn, "SELECT idempotency_key FROM jobs") == "k"
    assert finish(conn) == follow_up
    assert key(conn) == {"job_id": follow_up, "state": "window"}


def test_a_follow_up_that_dies_again_holds_the_key(conn: Session) -> None:
    add(conn)
    follow_up = value(conn, "SELECT replay(%s)", bury(conn))

    second = bury(conn)

    assert key(conn) == {"job_id": follow_up, "state": "held"}
    assert value(conn, "SELECT replay(%s)", second) > follow_up


def test_a_replay_is_refused_while_another_live_job_holds_the_key(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("DELETE FROM job_keys")
    holder = add(conn)

    with pytest.raises(psycopg.Error, match=f"its idempotency key is held by live job {holder}") as refused:
        conn.execute("SELECT replay(%s)", (letter,))

    assert refused.value.sqlstate == "PQ004"
    assert key(conn) == {"job_id": holder, "state": "live"}
    assert value(conn, "SELECT resolution FROM dead_letter_jobs") is None


def test_a_replay_that_jobs_does_not_accept_leaves_the_key_held(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("""UPDATE dead_letter_jobs SET payload = '{"typ": "a"}'""")

    with pytest.raises(psycopg.Error, match=r"does not accept it \(payload_is_an_object_with_a_type\): edit it first"):
        conn.execute("SELECT replay(%s)", (letter,))

    assert key(conn) == {"job_id": 1, "state": "held"}


def test_an_undone_discard_holds_the_key_again(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("SELECT discard(%s)", (letter,))

    conn.execute("SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", (letter,))

    assert key(conn) == {"job_id": 1, "state": "held"}


def test_an_undone_discard_takes_back_a_key_that_was_pruned(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("SELECT discard(%s)", (letter,))
    conn.execute("DELETE FROM job_keys")

    conn.execute("SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", (letter,))

    assert key(conn) == {"job_id": 1, "state": "held"}


def test_an_undone_discard_does_not_rob_a_live_job_of_the_key(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("SELECT discard(%s)", (letter,))
    expire(conn)
    holder = add(conn)

    conn.execute("SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", (letter,))

    assert key(conn) == {"job_id": holder, "state": "live"}
    with pytest.raises(psycopg.Error, match=f"held by live job {holder}"):
        conn.execute("SELECT replay(%s)", (letter,))


def test_an_undone_replay_holds_the_key_again(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    conn.execute("SELECT replay(%s)", (letter,))

    answer = row(conn, "SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", letter)

    assert answer == {"dead_letter_id": letter, "refusal": None}
    assert key(conn) == {"job_id": 1, "state": "held"}
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_a_replay_whose_job_was_claimed_cannot_be_undone(conn: Session) -> None:
    add(conn)
    letter = bury(conn)
    follow_up = value(conn, "SELECT replay(%s)", letter)
    claim(conn)

    answer = row(conn, "SELECT * FROM undo_resolutions(ARRAY[%s::bigint])", letter)

    assert answer["refusal"] == f"job {follow_up} has already been claimed"
    assert value(conn, "SELECT resolution FROM dead_letter_jobs") == "replayed"


def test_a_key_changed_by_hand_moves_the_key(conn: Session) -> None:
    add(conn, "old")
    finish_later = add(conn, "ended")
    conn.execute("DELETE FROM jobs WHERE id = %s", (finish_later,))

    conn.execute("UPDATE jobs SET idempotency_key = 'new'")

    assert key(conn, "new") == {"job_id": 1, "state": "live"}
    assert add(conn, "old") is not None
    with pytest.raises(psycopg.errors.UniqueViolation, match="stays taken until"):
        conn.execute("UPDATE jobs SET idempotency_key = 'ended' WHERE id = 1")
    conn.execute("UPDATE jobs SET idempotency_key = NULL WHERE id = 1")
    assert rows(conn, "SELECT key FROM job_keys WHERE expires_at IS NULL") == [{"key": "old"}]


def test_one_statement_with_a_key_twice_keeps_the_first(conn: Session) -> None:
    statement = """INSERT INTO jobs (payload, idempotency_key)
                   SELECT '{"type": "a"}', key FROM unnest(ARRAY['x', 'y', 'x', 'y', 'z']) key
                   ON CONFLICT (idempotency_key) DO NOTHING RETURNING idempotency_key"""

    assert [job["idempotency_key"] for job in rows(conn, statement)] == ["x", "y", "z"]
    assert rows(conn, statement) == []


def test_ten_thousand_duplicates_add_nothing(conn: Session) -> None:
    add(conn)
    conn.execute(
        """INSERT INTO jobs (payload, idempotency_key) SELECT '{"type": "a"}', 'k' FROM generate_series(1, 10000)
           ON CONFLICT (idempotency_key) DO NOTHING"""
    )

    assert value(conn, "SELECT count(*) FROM jobs") == 1
    assert value(conn, "SELECT data_type::text FROM pg_sequences WHERE sequencename = 'jobs_id_seq'") == "bigint"


# Several sessions


def test_an_open_transaction_that_tried_the_key_does_not_block_its_holder(dsn: str, conn: Session) -> None:
    add(conn)
    with session(dsn, autocommit=False) as other:
        assert add(other) is None
        conn.execute("SET lock_timeout = '2s'")

        finish(conn)

        assert key(conn) == {"job_id": 1, "state": "window"}


def test_two_sessions_with_the_same_new_key_make_one_row(dsn: str, conn: Session) -> None:
    with session(dsn, autocommit=False) as first, session(dsn) as second:
        winner = add(first)
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)

        first.commit()

        assert waiting.result() is None
    assert rows(conn, "SELECT id FROM jobs") == [{"id": winner}]
    assert key(conn) == {"job_id": winner, "state": "live"}


def test_a_rolled_back_insert_leaves_the_key_to_the_next(dsn: str, conn: Session) -> None:
    with session(dsn, autocommit=False) as first, session(dsn) as second:
        add(first)
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)

        first.rollback()

        winner = waiting.result()
    assert winner is not None
    assert key(conn) == {"job_id": winner, "state": "live"}


def test_two_sessions_that_take_over_an_expired_key_make_one_row(dsn: str, conn: Session) -> None:
    add(conn)
    finish(conn)
    expire(conn)
    with session(dsn, autocommit=False) as first, session(dsn) as second:
        winner = add(first)
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)

        first.commit()

        assert waiting.result() is None
    assert rows(conn, "SELECT id FROM jobs") == [{"id": winner}]


def test_the_loser_of_a_take_over_does_not_block_the_new_holder(dsn: str, conn: Session) -> None:
    add(conn)
    finish(conn)
    expire(conn)
    with session(dsn, autocommit=False) as first, session(dsn, autocommit=False) as second:
        winner = add(first)
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)
        first.commit()
        assert waiting.result() is None
        conn.execute("SET lock_timeout = '2s'")

        assert finish(conn) == winner


def test_an_insert_that_waited_while_the_holder_ended_inserts_nothing(dsn: str, conn: Session) -> None:
    add(conn)
    with session(dsn, autocommit=False) as holder, session(dsn) as second:
        holder.execute("DELETE FROM jobs")
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)

        holder.commit()

        assert waiting.result() is None
    assert value(conn, "SELECT count(*) FROM jobs") == 0
    assert key(conn) == {"job_id": 1, "state": "window"}


@contextlib.contextmanager
def stopped_between_key_and_index(conn: Session) -> Iterator[None]:
    """Every keyed INSERT stands still where its key was looked at and the row is not in the table yet."""
    conn.execute(
        """CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS
           'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END';
           CREATE TRIGGER z_after_all_others BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION stand_still();
           SELECT pg_advisory_lock(7)"""
    )
    yield
    conn.execute("SELECT pg_advisory_unlock(7)")


def test_an_insert_is_asked_to_repeat_when_the_holder_ended_under_its_hands(dsn: str, conn: Session) -> None:
    add(conn)
    with session(dsn) as second:
        with stopped_between_key_and_index(conn):
            waiting = InBackground(lambda: add(second))
            wait_until_blocked(conn, second)
            conn.execute("DELETE FROM jobs")

        with pytest.raises(psycopg.errors.UniqueViolation, match="ended while this insert waited: repeat") as refused:
            waiting.result()

        assert refused.value.diag.constraint_name == "jobs_idempotency_key_key"
        assert add(second) is None
    assert value(conn, "SELECT count(*) FROM jobs") == 0
    assert key(conn) == {"job_id": 1, "state": "window"}


def test_an_insert_takes_the_key_when_it_expired_under_its_hands(dsn: str, conn: Session) -> None:
    add(conn)
    conn.execute("UPDATE parameters SET value = '-1' WHERE name = 'key_window'")
    with session(dsn) as second:
        with stopped_between_key_and_index(conn):
            waiting = InBackground(lambda: add(second))
            wait_until_blocked(conn, second)
            conn.execute("DELETE FROM jobs")

        winner = waiting.result()

    assert winner is not None
    assert key(conn) == {"job_id": winner, "state": "live"}


def test_the_function_repeats_by_itself(dsn: str, conn: Session) -> None:
    add(conn, "k", '{"type": "a", "data": {}}')
    with session(dsn) as second:
        with stopped_between_key_and_index(conn):
            waiting = InBackground(lambda: value(second, "SELECT enqueue('a', idempotency_key => 'k')"))
            wait_until_blocked(conn, second)
            conn.execute("DELETE FROM jobs")

        assert waiting.result() == 1


def test_an_insert_that_waited_while_the_holder_came_back_finds_it_alive(dsn: str, conn: Session) -> None:
    add(conn)
    with session(dsn, autocommit=False) as holder, session(dsn) as second:
        holder.execute("DELETE FROM jobs")
        waiting = InBackground(lambda: add(second))
        wait_until_blocked(conn, second)

        holder.rollback()

        assert waiting.result() is None
    assert key(conn) == {"job_id": 1, "state": "live"}


def test_keys_in_clashing_order_end_one_session_and_corrupt_nothing(dsn: str, conn: Session) -> None:
    with session(dsn, autocommit=False) as first, session(dsn, autocommit=False) as second:
        add(first, "x")
        add(second, "y")
        crossing = InBackground(lambda: add(first, "y"))
        wait_until_blocked(conn, first)
        victims = 0
        try:
            add(second, "x")
        except psycopg.errors.DeadlockDetected:
            second.rollback()
            victims += 1
        try:
            crossing.result()
        except psycopg.errors.DeadlockDetected:
            first.rollback()
            victims += 1
        assert victims == 1
        for one in (first, second):
            with contextlib.suppress(psycopg.Error):
                one.commit()

    jobs = rows(conn, "SELECT idempotency_key AS key, id AS job_id FROM jobs ORDER BY key")
    keys = rows(conn, "SELECT key, job_id FROM job_keys WHERE expires_at IS NULL ORDER BY key")
    assert len(jobs) == 2
    assert keys == jobs


# Keys without a holder


def test_a_key_whose_job_vanished_without_its_triggers_blocks_nobody(conn: Session) -> None:
    add(conn)
    with conn.transaction():
        conn.execute("SET LOCAL session_replication_role = replica")
        conn.execute("DELETE FROM jobs")
    assert key(conn) == {"job_id": 1, "state": "live"}

    second = add(conn)

    assert second is not None
    assert key(conn) == {"job_id": second, "state": "live"}


def release(conn: Session, limit: int = 2) -> int:
    """All windows of the table; returns how many there were."""
    after = ""
    for windows in range(100):
        last = QUERIES.release_orphan_keys(after=after, limit=limit).fetch_one_sync(conn)
        if last is None:
            return windows
        after = last
    raise AssertionError("the windows have no end")


def test_orphaned_keys_are_released_and_others_are_left_alone(conn: Session) -> None:
    for name in ("a-live", "b-window", "c-letter", "d-orphan", "e-orphaned-letter"):
        add(conn, name)
    conn.execute("DELETE FROM jobs WHERE idempotency_key = 'b-window'")
    conn.execute("UPDATE jobs SET priority = 1 WHERE idempotency_key IN ('c-letter', 'e-orphaned-letter')")
    bury(conn)
    bury(conn)
    with conn.transaction():
        conn.execute("SET LOCAL session_replication_role = replica")
        conn.execute("DELETE FROM jobs WHERE idempotency_key = 'd-orphan'")
        conn.execute("DELETE FROM dead_letter_jobs WHERE idempotency_key = 'e-orphaned-letter'")

    assert release(conn) == 3

    states = {name: key(conn, name)["state"] for name in ("a-live", "b-window", "c-letter", "d-orphan")}
    assert states == {"a-live": "live", "b-window": "window", "c-letter": "held", "d-orphan": "free"}
    assert key(conn, "e-orphaned-letter")["state"] == "free"


def test_releasing_orphans_never_waits_for_a_live_key(dsn: str, conn: Session) -> None:
    add(conn)
    with session(dsn, autocommit=False) as holder:
        holder.execute("DELETE FROM jobs")
        conn.execute("SET lock_timeout = '2s'")

        assert release(conn) == 1

        holder.commit()
    assert key(conn) == {"job_id": 1, "state": "window"}
