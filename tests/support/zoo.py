"""Rows in every state, put there by plain SQL, so that the read side and the verbs are tested against the same zoo."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb


async def value_of(conn: AsyncConnection[Any], statement: str, *parameters: object) -> Any:
    """The first column of the first row; None without a row."""
    row = await (await conn.execute(statement.encode(), parameters)).fetchone()
    return row[0] if row else None


async def add_job(
    conn: AsyncConnection[Any],
    job_type: str = "send_email",
    *,
    queue: str = "default",
    data: object = None,
    priority: int = 0,
    due_in: timedelta = timedelta(0),
    key: str | None = None,
    attempts: int = 0,
    max_attempts: int = 5,
    waiting_for: str | None = None,
    last_error: str | None = None,
) -> int:
    """A pending, scheduled or waiting job."""
    return await value_of(
        conn,
        """
        INSERT INTO jobs (queue, payload, priority, not_before, idempotency_key, attempts, max_attempts, waiting_for,
                          status, last_error)
        VALUES (%s, %s, %s, now() + %s, %s, %s, %s, %s,
                CASE WHEN %s::text IS NULL THEN 'pending' ELSE 'waiting' END, %s)
        RETURNING id""",
        queue,
        Jsonb({"type": job_type, "data": data or {}}),
        priority,
        due_in,
        key,
        attempts,
        max_attempts,
        waiting_for,
        waiting_for,
        last_error,
    )


async def start_job(conn: AsyncConnection[Any], job_id: int, worker_id: str = "w-1") -> None:
    """As a claim by a worker would leave it."""
    await conn.execute(
        """
        UPDATE jobs
           SET status = 'running', locked_by = %s, locked_at = now(), claim_token = nextval('claim_token_seq')
         WHERE id = %s""",
        (worker_id, job_id),
    )


async def add_running_job(conn: AsyncConnection[Any], worker_id: str = "w-1", **given: Any) -> int:
    job_id = await add_job(conn, **given)
    await start_job(conn, job_id, worker_id)
    return job_id


async def add_dead_letter(
    conn: AsyncConnection[Any],
    job_type: str = "send_email",
    *,
    queue: str = "default",
    data: object = None,
    error: str = "ValueError: bad address",
    fingerprint: str | None = "aaaaaaaaaaaa",
    attempts: int = 5,
    max_attempts: int = 5,
    key: str | None = None,
    reason: str = "exhausted",
    age: timedelta = timedelta(0),
) -> int:
    """A job that has died, by the statement a worker runs: its key, run and statistics are as they would be."""
    job_id = await add_running_job(
        conn,
        job_type=job_type,
        queue=queue,
        data=data,
        key=key,
        attempts=attempts - 1,
        max_attempts=max_attempts,
    )
    letter = await value_of(
        conn,
        """
        WITH job AS (DELETE FROM jobs WHERE id = %s RETURNING *)
        INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, max_attempts,
                                      idempotency_key, reason, error_class, fingerprint, last_worker, created_at,
                                      died_at, origin_job_id, traceback)
        SELECT id, queue, payload, %s, %s, max_attempts, idempotency_key,
               %s, split_part(%s, ':', 1), %s, locked_by, created_at, now() - %s::interval, id,
               'Traceback (most recent call last)'
          FROM job
        RETURNING id""",
        job_id,
        error,
        attempts,
        reason,
        error,
        fingerprint,
        age,
    )
    if key is not None:
        await conn.execute("UPDATE job_keys SET expires_at = 'infinity' WHERE key = %s", (key,))
    return letter


async def add_run(
    conn: AsyncConnection[Any],
    job_id: int = 1,
    *,
    queue: str = "default",
    job_type: str = "send_email",
    outcome: str = "succeeded",
    worker_id: str = "w-1",
    error: str | None = None,
    attempt: int = 1,
    seconds: float = 0.5,
) -> int:
    return await value_of(
        conn,
        """
        INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, success, error, queue, job_type, attempt,
                              outcome)
        VALUES (%s, %s, now() - make_interval(secs => %s), now(), %s, %s, %s, %s, %s, %s)
        RETURNING id""",
        job_id,
        worker_id,
        seconds,
        outcome == "succeeded",
        error,
        queue,
        job_type,
        attempt,
        outcome,
    )


async def add_worker(
    conn: AsyncConnection[Any],
    worker_id: str = "w-1",
    *,
    host: str = "host-a",
    pool: str | None = None,
    queues: tuple[str, ...] = ("default",),
    job_types: tuple[str, ...] = ("send_email",),
    concurrency: int = 4,
    state: str = "running",
    beat_age: timedelta = timedelta(0),
    stopped: bool = False,
) -> str:
    await conn.execute(
        """
        INSERT INTO workers (id, host, pid, pool, queues, job_types, concurrency, state, heartbeat_at, stopped_at,
                             last_output)
        VALUES (%s, %s, 4711, %s, %s, %s, %s, %s, now() - %s::interval, CASE WHEN %s THEN now() END, 'last words')""",
        (worker_id, host, pool, list(queues), list(job_types), concurrency, state, beat_age, stopped),
    )
    return worker_id


async def add_pool(
    conn: AsyncConnection[Any],
    name: str = "emails",
    *,
    host: str = "host-a",
    wanted: int = 2,
    minimum: int = 0,
    maximum: int = 8,
    state: str = "ok",
) -> None:
    await conn.execute(
        """
        INSERT INTO worker_pools (host, name, queues, wanted, minimum, maximum, state)
        VALUES (%s, %s, '{default}', %s, %s, %s, %s)""",
        (host, name, wanted, minimum, maximum, state),
    )


async def add_stats(
    conn: AsyncConnection[Any],
    *,
    queue: str = "default",
    age: timedelta = timedelta(0),
    succeeded: int = 0,
    retried: int = 0,
    dead: int = 0,
    seconds: float = 0.5,
) -> None:
    """Finished runs of one duration in the bucket of `age` ago."""
    await conn.execute(
        """
        INSERT INTO job_stats (bucket, queue, job_type, slot, succeeded, retried, dead, duration_seconds, durations,
                               waits)
        SELECT date_bin('5 seconds', now() - %(age)s::interval, timestamptz '2000-01-01 00:00+00'), %(queue)s,
               'send_email', 0, %(succeeded)s, %(retried)s, %(dead)s, %(n)s * %(seconds)s::double precision,
               cells, cells
          FROM (SELECT count_cells(array_fill(width_bucket(%(seconds)s::double precision, histogram_bounds()),
                                              ARRAY[%(n)s::int])) AS cells) counted""",
        {
            "age": age,
            "queue": queue,
            "succeeded": succeeded,
            "retried": retried,
            "dead": dead,
            "seconds": seconds,
            "n": succeeded + retried + dead,
        },
    )
