"""Jobs that can never run end where somebody sees them; jobs that only wait are left alone."""

from __future__ import annotations

from pgq_core.maintenance import Maintenance
from pgq_core.settings import load_settings
from tests.support.queue_database import FAULTS, QueueDatabase

WEEK = 7 * 86400


def waiting_for(database: QueueDatabase, job_type: str, days: float, queue: str = "default", priority: int = 0) -> int:
    return int(
        database.value(
            "INSERT INTO jobs (payload, queue, priority, not_before, created_at) "
            "VALUES (jsonb_build_object('type', %s::text), %s, %s, now() - %s * interval '1 day', "
            "now() - %s * interval '1 day') RETURNING id",
            job_type,
            queue,
            priority,
            days,
            days,
        )
    )


def live_worker(database: QueueDatabase, *job_types: str, queues: str = "{default}") -> None:
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, job_types, started_at) "
        "VALUES ('w', 'h', %s, 1, 'running', %s, now() - interval '1 hour')",
        queues,
        list(job_types),
    )


async def test_type_that_nobody_has_known_for_long_becomes_a_dead_letter(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    live_worker(database, "known")
    unknown = [waiting_for(database, "unknown", 8, priority=priority) for priority in (-5, 0, 9)]
    patient = waiting_for(database, "unknown", 6)
    known = waiting_for(database, "known", 30)

    await maintenance.unknown_types.run_once()

    for job_id in unknown:
        letter = database.letter(job_id)
        assert letter is not None
        assert (letter["reason"], letter["attempts"]) == ("unknown_type", 0)
        assert letter["last_error"].startswith("no worker has known the type unknown for 7 days: ")
        assert "--app" in letter["last_error"]
        assert [(run["attempt"], run["outcome"]) for run in database.runs(job_id)] == [(0, "dead")]
    assert (database.job(patient) or {})["status"] == "pending"
    assert (database.job(known) or {})["status"] == "pending"
    assert database.all(FAULTS) == []


async def test_a_due_time_in_the_past_does_not_shorten_the_patience(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    live_worker(database, "known")
    job_id = database.put("unknown", not_before="2020-01-01T00:00:00Z")

    await maintenance.unknown_types.run_once()

    assert database.job(job_id) is not None


async def test_nothing_is_unknown_where_no_worker_lives(database: QueueDatabase, maintenance: Maintenance) -> None:
    job_id = waiting_for(database, "unknown", 30)
    await maintenance.unknown_types.run_once()
    assert database.job(job_id) is not None

    live_worker(database, "known", queues="{other}")
    await maintenance.unknown_types.run_once()

    assert database.job(job_id) is not None


async def test_type_that_was_announced_lately_is_not_unknown(database: QueueDatabase, maintenance: Maintenance) -> None:
    live_worker(database, "known")
    database.run("INSERT INTO job_types (name, announced_at) VALUES ('lately', now() - interval '1 day')")
    database.run("INSERT INTO job_types (name, announced_at) VALUES ('long ago', now() - interval '60 days')")
    lately, long_ago = waiting_for(database, "lately", 30), waiting_for(database, "long ago", 30)

    await maintenance.unknown_types.run_once()

    assert database.job(lately) is not None
    assert database.letter(long_ago) is not None


async def test_job_whose_budget_was_lowered_is_buried(database: QueueDatabase, maintenance: Maintenance) -> None:
    spent = database.put("type", attempts=3)
    scheduled = database.put("type", attempts=3)
    fresh = database.put("type", attempts=3)
    database.run("UPDATE jobs SET max_attempts = 2, last_error = 'it failed' WHERE id = %s", spent)
    database.run(
        "UPDATE jobs SET max_attempts = 2, status = 'scheduled', not_before = now() + interval '1 h' WHERE id = %s",
        scheduled,
    )

    await maintenance.spent_budgets.run_once()

    letter = database.letter(spent)
    assert letter is not None
    assert (letter["reason"], letter["attempts"], letter["last_error"]) == ("exhausted", 3, "it failed")
    assert database.letter(scheduled) is not None
    assert database.job(fresh) is not None


async def test_keyed_job_of_an_unknown_type_keeps_its_key(database: QueueDatabase) -> None:
    maintenance = Maintenance(load_settings(dsn=database.dsn, unknown_type_after=0))
    live_worker(database, "known")
    job_id = database.put("unknown", idempotency_key="k")
    database.run("UPDATE jobs SET not_before = now() - interval '1 min' WHERE id = %s", job_id)

    await maintenance.unknown_types.run_once()

    assert database.letter(job_id) is not None
    assert database.value("SELECT expires_at = 'infinity' FROM job_keys WHERE key = 'k'")
    await maintenance.close()
