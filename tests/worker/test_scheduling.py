"""When jobs start: never early, never forgotten, by the database's clock."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from pgq_core import JobQueue
from pgq_core.migrate import migrate
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


def test_plain_insert_with_a_time_ahead_starts_after_it(database: QueueDatabase, workers: Workers) -> None:
    workers.start()
    database.run(
        "INSERT INTO jobs (payload, not_before) SELECT '{\"type\": \"noop\"}', now() + n * interval '100 ms' "
        "FROM generate_series(1, 20) n"
    )
    database.run("INSERT INTO jobs (payload, not_before) VALUES ('{\"type\": \"noop\"}', now() + interval '3 seconds')")

    eventually(lambda: not database.all("SELECT FROM jobs"), timeout=30)

    assert database.all("SELECT FROM job_runs WHERE started_at < due_at") == []
    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'succeeded'") == 21


def test_retries_start_although_no_maintenance_runs_anywhere(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("fail_after", {"delay": 0.2}, max_attempts=3)

    workers.start("--no-maintenance")

    eventually(lambda: database.letter(job_id), timeout=30)
    assert database.outcomes(job_id) == ["retried", "retried", "dead"]


def test_delay_of_a_retry_reaches_the_row_as_a_typed_value(database: QueueDatabase, workers: Workers) -> None:
    jobs = {delay: database.put("fail_after", {"delay": delay}, max_attempts=2) for delay in (1e-9, 1e-6, 0.0, 3600.0)}

    workers.start()

    eventually(lambda: all(database.runs(job_id) for job_id in jobs.values()))
    later = jobs.pop(3600.0)
    for job_id in jobs.values():  # due at once: the second attempt follows
        eventually(lambda job_id=job_id: database.letter(job_id))  # type: ignore[misc]  # binds
        assert database.outcomes(job_id) == ["retried", "dead"]
    waited = database.one(
        "SELECT status, attempts, not_before > %s + interval '1 second' AS is_later FROM jobs WHERE id = %s",
        database.runs(later)[0]["finished_at"],
        later,
    )
    assert (waited["status"], waited["attempts"], waited["is_later"]) == ("scheduled", 1, True)


def test_policy_that_answers_nonsense_falls_back_to_the_announced_one(
    database: QueueDatabase, workers: Workers
) -> None:
    jobs = [database.put("fail_after", {"delay": value}, max_attempts=2) for value in ("text", None, [1], 1e300, -5.0)]

    workers.start()

    eventually(lambda: all(database.runs(job_id) for job_id in jobs), timeout=30)
    assert all(database.outcomes(job_id)[0] == "retried" for job_id in jobs)


def test_repairs_by_hand_take_effect_by_the_next_poll(database: QueueDatabase, workers: Workers) -> None:
    database.run("INSERT INTO jobs (payload, not_before) VALUES ('{\"type\": \"noop\"}', now() + interval '1 hour')")
    job_id = database.value("SELECT id FROM jobs")
    workers.start()

    database.run("UPDATE jobs SET not_before = now() WHERE id = %s", job_id)

    eventually(lambda: database.outcomes(job_id) == ["succeeded"], timeout=30)


def test_unknown_type_waits_and_runs_as_soon_as_somebody_knows_it(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("from_elsewhere")
    known = database.put("noop")
    workers.start()
    eventually(lambda: database.outcomes(known) == ["succeeded"], timeout=30)
    row = database.job(job_id)
    assert row is not None
    assert (row["status"], row["attempts"]) == ("pending", 0)

    workers.start(apps=("tests.worker.kinds", "tests.worker.other_kinds"))

    eventually(lambda: database.outcomes(job_id) == ["succeeded"], timeout=30)


def test_serializable_as_the_default_of_the_database_harms_nobody(database: QueueDatabase, workers: Workers) -> None:
    name = database.value("SELECT current_database()")
    database.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    database.run(f"ALTER DATABASE {name} SET statement_timeout = '10s'")
    database.run(
        "INSERT INTO jobs (payload) SELECT jsonb_build_object('type', 'noop', 'data', n) "
        "FROM generate_series(1, 3000) n"
    )

    for _ in range(2):
        workers.start(concurrency=20)

    eventually(lambda: not database.all("SELECT FROM jobs LIMIT 1"), timeout=60)
    assert database.all("SELECT FROM job_runs WHERE outcome <> 'succeeded'") == []


def test_other_forms_of_values_as_the_default_of_the_database_harm_nobody(
    database: QueueDatabase, workers: Workers
) -> None:
    """Dates, intervals and NULLs in arrays would be read as something else, or not at all."""
    name = database.value("SELECT current_database()")
    for setting in ("datestyle = 'German, DMY'", "intervalstyle = 'sql_standard'", "array_nulls = off"):
        database.run(f"ALTER DATABASE {name} SET {setting}")
    migrate(database.dsn, schema=SCHEMA)
    workers.start()

    with JobQueue(database.dsn) as queue:
        alone = queue.enqueue("noop", idempotency_key="k", delay=timedelta(milliseconds=50)).id
        many = [one.id for one in queue.enqueue_many([("noop", None), ("fail", {"text": "broken"})])]
        eventually(lambda: database.outcomes(alone) == database.outcomes(many[0]) == ["succeeded"], timeout=60)
        retried = eventually(lambda: (job := queue.get(many[1])) and job.attempts and job, timeout=60)

    assert retried.not_before.tzinfo is not None


def test_every_line_of_the_log_is_json_with_the_promised_fields(database: QueueDatabase, workers: Workers) -> None:
    good = database.put("noop")
    bad = database.put("fail", {"text": "broken"}, max_attempts=1)
    worker = workers.start(log_level="debug")
    eventually(lambda: database.runs(good) and database.letter(bad), timeout=30)
    worker.stop()

    lines = [json.loads(line) for line in worker.text().splitlines()]
    by_event = {line["event"]: line for line in lines if line.get("job_id") in {good, bad}}
    assert {"job_claimed", "job_started", "job_succeeded", "job_dead"} <= set(by_event)
    ended = by_event["job_succeeded"]
    assert {"worker_id", "job_id", "job_type", "queue", "attempt", "duration_ms", "event"} <= set(ended)
    assert by_event["job_dead"]["error"] == "RuntimeError: broken"
    assert by_event["job_dead"]["error_class"] == "RuntimeError"
