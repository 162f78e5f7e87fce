"""Rows that a test needs as they are in the middle of something: running jobs, workers that fell silent."""

from __future__ import annotations

from tests.support.queue_database import QueueDatabase


def add_worker(database: QueueDatabase, worker: str, *, beat_ago: float = 0.0, stopped: bool = False) -> None:
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, heartbeat_at, stopped_at) "
        "VALUES (%s, 'host', '{default}', 1, %s, now() - make_interval(secs => %s), CASE WHEN %s THEN now() END)",
        worker,
        "stopped" if stopped else "running",
        beat_ago,
        stopped,
    )


def add_running(database: QueueDatabase, worker: str, *, claimed_ago: float = 0.0, **columns: object) -> int:
    job_id = database.put(str(columns.pop("job_type", "job")), **columns)
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = %s, locked_at = now() - make_interval(secs => %s), "
        "claim_token = nextval('claim_token_seq') WHERE id = %s",
        worker,
        claimed_ago,
        job_id,
    )
    return job_id


def token(database: QueueDatabase, job_id: int) -> int:
    return int(database.value("SELECT claim_token FROM jobs WHERE id = %s", job_id))
