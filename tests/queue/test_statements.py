"""The statements of the queue look rows up by an index, whatever the tables hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from pgq_core.domain.enqueue import NewJob
from pgq_core.queries import Queries, Statement

QUERIES = Queries("pgq_core")
KEYED = [NewJob("t", b"{}", "default", 5, idempotency_key=f"k{number}") for number in range(100)]
STATEMENTS: list[Statement[Any]] = [
    QUERIES.enqueue_job(NewJob("t", b"{}", "default", 5)),
    QUERIES.enqueue_jobs(KEYED),
    QUERIES.extend_lease(id=500, token=1, lease=timedelta(minutes=5)),
    QUERIES.find_job(500),
    QUERIES.find_job_end(500),
]


@pytest.fixture
def full(dsn: str) -> Iterator[Connection[DictRow]]:
    """A database with enough rows that a scan would not be the cheapest way."""
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as conn:
        conn.execute(
            """INSERT INTO jobs (payload, idempotency_key)
               SELECT '{"type": "t"}', 'k' || n FROM generate_series(1, 20000) n"""
        )
        conn.execute(
            """INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
               SELECT n, 'default', '{"type": "t"}', 'e', 5 FROM generate_series(1, 20000) n"""
        )
        conn.execute(
            """INSERT INTO job_runs (job_id, worker_id, started_at, finished_at)
               SELECT n, 'w', now(), now() FROM generate_series(1, 20000) n"""
        )
        conn.execute("ANALYZE jobs, job_keys, job_runs, dead_letter_jobs")
        yield conn


def test_no_full_table_is_scanned(full: Connection[DictRow]) -> None:
    large = {row["relname"] for row in full.execute("SELECT relname FROM pg_class WHERE reltuples > 1000")}
    for statement in STATEMENTS:
        answer = full.execute(f"EXPLAIN (FORMAT json) {statement.text}", statement.params).fetchall()

        plan = json.dumps([row["QUERY PLAN"] for row in answer])
        scanned = set(re.findall(r'"Node Type": "Seq Scan"[^{}]*?"Relation Name": "(\w+)"', plan))
        assert scanned & large == set(), statement.name
