"""Rows for tests of the API, put there by plain SQL."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob
from tests.support.queue_database import QueueDatabase


def announce(database: QueueDatabase, name: str, model: Any = None, **columns: Any) -> None:
    """As a worker announces a type."""
    columns |= {"name": name, "model": None if model is None else json.dumps(model)}
    names, signs = ", ".join(columns), ", ".join(["%s"] * len(columns))
    database.run(f"INSERT INTO job_types ({names}) VALUES ({signs})", *columns.values())


def bury(
    database: QueueDatabase,
    job_type: str = "mail",
    data: Any = None,
    *,
    error: str = "ValueError: no",
    fingerprint: str | None = "f1",
    queue: str = "default",
    key: str | None = None,
) -> int:
    """A dead letter, made by the statement a worker runs; answers its id."""
    columns = {"queue": queue} if key is None else {"queue": queue, "idempotency_key": key}
    job_id = database.put(job_type, data, **columns)
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'w', locked_at = now(), "
        "claim_token = nextval('claim_token_seq') WHERE id = %s",
        job_id,
    )
    token = database.value("SELECT claim_token FROM jobs WHERE id = %s", job_id)
    error_class = error.partition(":")[0]
    buried = BuriedJob(
        job_id,
        token,
        "w",
        None,
        None,
        "exhausted",
        charge=1,
        error=error,
        error_class=error_class,
        fingerprint=fingerprint,
    )
    with psycopg.connect(database.dsn, autocommit=True) as conn:
        (row,) = Queries("pgq_core").bury_jobs([buried], slot=0).fetch_all_sync(conn)
    return row.dead_letter_id
