"""Due jobs become pending, all others stay."""

from __future__ import annotations

from pgq_core.maintenance import Maintenance
from tests.support.queue_database import QueueDatabase


def scheduled(database: QueueDatabase, seconds: float, queue: str = "default") -> int:
    """A job whose time came while nobody looked: the clock cannot be turned, the row can."""
    job_id = database.put("type", queue=queue)
    database.run(
        "UPDATE jobs SET status = 'scheduled', not_before = now() + make_interval(secs => 3600) WHERE id = %s", job_id
    )
    database.run("ALTER TABLE jobs DISABLE TRIGGER jobs_derive_status_of_changed")
    database.run("UPDATE jobs SET not_before = now() + make_interval(secs => %s) WHERE id = %s", seconds, job_id)
    database.run("ALTER TABLE jobs ENABLE TRIGGER jobs_derive_status_of_changed")
    return job_id


async def test_due_jobs_of_all_queues_become_pending(database: QueueDatabase, maintenance: Maintenance) -> None:
    due = [scheduled(database, -1.0, queue) for queue in ("a", "b", "c")]
    ahead = scheduled(database, 60.0, "b")

    await maintenance.promoter.run_once()

    assert all((database.job(job_id) or {})["status"] == "pending" for job_id in due)
    assert (database.job(ahead) or {})["status"] == "scheduled"


async def test_next_turn_comes_when_the_next_job_is_due(database: QueueDatabase, maintenance: Maintenance) -> None:
    maintenance.promoter._longest = 600.0
    scheduled(database, 60.0)
    await maintenance.promoter.run_once()
    assert 0.0 < maintenance.promoter.interval <= 60.0

    database.run("DELETE FROM jobs")
    await maintenance.promoter.run_once()
    assert maintenance.promoter.interval == 600.0


async def test_sleeping_workers_are_woken_for_promoted_jobs(database: QueueDatabase, maintenance: Maintenance) -> None:
    import psycopg

    channel = database.value("SELECT wake_channel()")
    with psycopg.connect(database.dsn, autocommit=True) as sleeper:
        sleeper.execute(f'LISTEN "{channel}"')
        scheduled(database, -1.0)
        await maintenance.promoter.run_once()
        assert list(sleeper.notifies(timeout=0.2)) == []

        database.run("INSERT INTO worker_waits VALUES ('sleeper', true)")
        scheduled(database, -1.0)
        await maintenance.promoter.run_once()
        (notify, *_) = sleeper.notifies(timeout=60, stop_after=1)

    assert notify.payload == "jobs"
