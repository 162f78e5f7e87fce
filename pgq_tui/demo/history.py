"""A little past for a new demo database, so that the first chart shows a line and not a dot.

Real jobs through the queue's own statements: enqueued, claimed and finished; only their times lie back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from psycopg import Connection

from pgq_core.job_queue import JobQueue
from pgq_core.queries import Queries
from pgq_core.queries.claims import ClaimedRow, FinishedJob
from pgq_tui.demo import shop
from pgq_tui.demo.customers import Customers

PAST = 600.0
STEP = 5.0
PACE = 0.5
"""Business was quieter then, without bursts: fewer jobs are seeded sooner."""
WORKER = "history"
TYPICAL_SECONDS = {"sales_report": 9.0, "capture_payment": 0.35, "invoice": 0.2, "resize_image": 0.04}


def seed_history(conn: Connection[Any], queue: JobQueue, schema: str) -> int:
    """Ten minutes of finished jobs; not inside a transaction. Returns their number."""
    queries, random = Queries(schema), Random(0)  # noqa: S311 - a made-up past
    customers = Customers(0, first_number=1, burst_size=0)
    steps = [(-PAST + n * STEP) for n in range(int(PAST / STEP))]
    requests = [request for at in steps for request in customers.jobs_between(at, at + STEP * PACE)]
    # Without keys and delays, which cost time and would leave a rest that is not history yet.
    queue.enqueue_many([replace(request, idempotency_key=None, delay=None) for request in requests])
    claimed = [
        row for name in (shop.EMAILS, shop.BILLING, shop.IMAGES, shop.REPORTS) for row in _claim(conn, queries, name)
    ]
    random.shuffle(claimed)
    for slot, chunk in enumerate(_chunks(claimed, len(steps))):
        at = steps[slot]
        finished = [_finished(row, at, random) for row in chunk]
        queries.finish_jobs(finished, worker_id=WORKER, slot=0).execute_sync(conn)
    return len(claimed)


def _claim(conn: Connection[Any], queries: Queries, queue: str) -> list[ClaimedRow]:
    claim = queries.claim_jobs(queue=queue, worker_id=WORKER, limit=10_000, job_types=None, lease=timedelta(minutes=5))
    return claim.fetch_all_sync(conn)


def _finished(row: ClaimedRow, at: float, random: Random) -> FinishedJob:
    seconds = TYPICAL_SECONDS.get(row.job_type, 0.09) * random.uniform(0.5, 2.0)
    finished = row.claimed_at + at + random.uniform(0, STEP)
    return FinishedJob(row.id, row.claim_token, finished - seconds, finished)


def _chunks(rows: list[ClaimedRow], count: int) -> Iterator[list[ClaimedRow]]:
    for n in range(count):
        yield rows[len(rows) * n // count : len(rows) * (n + 1) // count]
