"""Each question of the judge is able to answer: a planted violation is found, and a healthy table has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.torture.arena import Arena
from tests.torture.conftest import open_arena
from tests.torture.invariants import NAMES, violations

JOB = 'INSERT INTO jobs (payload, attempts, max_attempts) VALUES (\'{"type": "t"}\', 0, 5)'
RUN = (
    "INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, outcome, attempt, queue, job_type) "
    "VALUES (%s, '%s', now() - interval '%s s', now() - interval '%s s', '%s', %s, 'default', 't')"
)
LETTER = (
    "INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, max_attempts) "
    "VALUES (1, 'default', '{\"type\": \"t\"}', 'e', %s, 5)"
)
LEDGER = "INSERT INTO torture.ledger VALUES (extract(epoch FROM now()) - %s, '%s', 1, %s, '%s', 1)"
CLAIM = (
    "UPDATE jobs SET status = 'running', locked_by = 'gone', locked_at = now() - interval '1 hour', "
    "claim_token = nextval('claim_token_seq')"
)

PLANTED: dict[str, tuple[str, ...]] = {
    "accepted_job_is_nowhere": ("INSERT INTO torture.accepted VALUES (1)",),
    "live_and_ended_at_once": (JOB, RUN % (1, "w", 2, 1, "succeeded", 1)),
    "two_ends_of_one_job": (RUN % (1, "w", 4, 3, "succeeded", 1), RUN % (1, "w", 2, 1, "dead", 2)),
    "dead_letter_without_its_run": (LETTER % 1,),
    "run_that_ends_before_it_starts": (RUN % (1, "w", 1, 2, "retried", 1),),
    "running_without_a_living_owner": (JOB, CLAIM),
    "overlapping_accepted_runs": (
        RUN % (1, "a", 9, 6, "retried", 1),
        RUN % (1, "b", 8, 5, "succeeded", 2),
        LEDGER % (9, "start", 1, "a"),
        LEDGER % (6, "end", 1, "a"),
        LEDGER % (8, "start", 2, "b"),
        LEDGER % (5, "end", 2, "b"),
    ),
    "effect_without_a_recorded_run": (LEDGER % (9, "start", 1, "a"),),
    "success_without_an_effect": (
        "INSERT INTO torture.accepted VALUES (1)",
        RUN % (1, "w", 2, 1, "succeeded", 1),
    ),
    "more_attempts_than_allowed": (LETTER % 6, RUN % (1, "w", 2, 1, "dead", 6)),
    "one_key_held_twice": (
        "ALTER TABLE jobs DROP CONSTRAINT jobs_idempotency_key_key",
        JOB.replace("attempts,", "idempotency_key, attempts,", 1).replace(", 0,", ", 'k', 0,"),
        "ALTER TABLE jobs DISABLE TRIGGER ALL",
        JOB.replace("attempts,", "idempotency_key, attempts,", 1).replace(", 0,", ", 'k', 0,"),
    ),
    "statistics_that_disagree_with_runs": (RUN % (1, "w", 2, 1, "retried", 1),),
}
OF_SESSIONS = ("forgotten_transaction", "forgotten_advisory_lock")


@pytest.fixture(scope="module")
def arena(server_dsn: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Never written to for good: each violation is planted in a transaction."""
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as dsn:
        arena = open_arena(dsn, Path(tmp_path_factory.mktemp("arena")))
        yield arena
        arena.close()


def test_each_question_has_a_planted_violation() -> None:
    assert sorted((*PLANTED, *OF_SESSIONS)) == sorted(NAMES)


def test_empty_queue_violates_nothing(arena: Arena) -> None:
    assert arena.violations() == []


@pytest.mark.parametrize("name", PLANTED)
def test_planted_violation_is_found(arena: Arena, name: str) -> None:
    conn = arena.database.connection()
    with conn.transaction(force_rollback=True):
        for statement in PLANTED[name]:
            conn.execute(statement)
        rows = conn.execute(question(name), {"patience": 5.0}).fetchall()

    assert rows
    assert conn.execute(question(name), {"patience": 5.0}).fetchall() == []


KEEPS_LESS = "INSERT INTO queues (name, audit) VALUES ('default', 'failures')"
STATS = (
    "INSERT INTO job_stats (bucket, queue, job_type, slot, {0}, durations, waits) "
    "VALUES ('2026-01-01', 'default', 't', 0, 1, count_cells('{{}}'), count_cells('{{}}'))"
)


def test_plain_success_may_be_missing_where_a_queue_keeps_less(arena: Arena) -> None:
    conn = arena.database.connection()
    with conn.transaction(force_rollback=True):
        for statement in (
            KEEPS_LESS,
            "INSERT INTO torture.accepted VALUES (1)",
            LEDGER % (9, "start", 1, "a"),
            LEDGER % (8, "end", 1, "a"),
            STATS.format("succeeded"),
        ):
            conn.execute(statement)
        found = [name for name in PLANTED if conn.execute(question(name), {"patience": 5.0}).fetchall()]

    assert found == []


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("accepted_job_is_nowhere", PLANTED["accepted_job_is_nowhere"]),
        ("effect_without_a_recorded_run", PLANTED["effect_without_a_recorded_run"]),
        ("statistics_that_disagree_with_runs", (STATS.format("retried"),)),
        ("statistics_that_disagree_with_runs", (RUN % (1, "w", 2, 1, "succeeded", 1),)),
    ],
)
def test_all_else_is_missed_there_too(arena: Arena, name: str, planted: tuple[str, ...]) -> None:
    conn = arena.database.connection()
    with conn.transaction(force_rollback=True):
        for statement in (KEEPS_LESS, *planted):
            conn.execute(statement)
        rows = conn.execute(question(name), {"patience": 5.0}).fetchall()

    assert rows


def test_forgotten_sessions_are_found(arena: Arena) -> None:
    with psycopg.connect(arena.dsn, application_name="pgq worker: forgets") as forgetful:
        forgetful.execute("SELECT pg_advisory_xact_lock(1)")
        forgetful.execute("SELECT pg_sleep(1.1)")
        arena.database.run("SELECT pg_sleep(1.1)")
        found = violations(arena.database.connection(), patience=5.0, names=OF_SESSIONS)

    assert {violation.invariant for violation in found} == set(OF_SESSIONS)


def question(name: str) -> bytes:
    return (Path(__file__).with_name("invariants") / f"{name}.sql").read_bytes()
