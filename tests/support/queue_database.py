"""Looking into, and filling, the tables of one test's database."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

from pgq_core.domain.payload import decode_any
from tests.support.waiting import eventually

Row = dict[str, Any]


class QueueDatabase:
    """Plain SQL on a connection of its own; bare table names work."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._conn = self._connect()

    def close(self) -> None:
        self._conn.close()

    def all(self, sql: str, *params: object) -> list[Row]:
        return self.connection().execute(sql, params).fetchall()

    def one(self, sql: str, *params: object) -> Row:
        rows = self.all(sql, *params)
        assert len(rows) == 1, rows
        return rows[0]

    def value(self, sql: str, *params: object) -> Any:
        return next(iter(self.one(sql, *params).values()))

    def run(self, sql: str, *params: object) -> None:
        self.connection().execute(sql, params)

    def put(self, job_type: str, data: object = None, **columns: object) -> int:
        """A job, as a producer that knows only plain SQL would insert it."""
        columns["payload"] = json.dumps({"type": job_type, "data": {} if data is None else data})
        names, signs = ", ".join(columns), ", ".join(["%s"] * len(columns))
        job_id = self.value(f"INSERT INTO jobs ({names}) VALUES ({signs}) RETURNING id", *columns.values())
        assert isinstance(job_id, int)
        return job_id

    def until_started(self, count: int) -> None:
        until_started(self.all, count)

    def job(self, job_id: int) -> Row | None:
        rows = self.all("SELECT * FROM jobs WHERE id = %s", job_id)
        return rows[0] if rows else None

    def runs(self, job_id: int) -> list[Row]:
        return self.all("SELECT * FROM job_runs WHERE job_id = %s ORDER BY id", job_id)

    def outcomes(self, job_id: int) -> list[str]:
        return [run["outcome"] for run in self.runs(job_id)]

    def letter(self, job_id: int) -> Row | None:
        rows = self.all("SELECT * FROM dead_letter_jobs WHERE original_job_id = %s", job_id)
        return rows[0] if rows else None

    def empty(self) -> None:
        """As it was after the migration: much cheaper than another database."""
        self.run(
            "TRUNCATE jobs, job_runs, dead_letter_jobs, job_keys, job_stats, job_types, workers, worker_waits, queues, "
            "leases, operations RESTART IDENTITY"
        )
        self.run(
            "SELECT ensure_run_partitions((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + 7)"
        )

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row)
        set_json_loads(decode_any, connection)
        return connection

    def connection(self) -> psycopg.Connection[Row]:
        if self._conn.closed or self._conn.broken:
            self._conn = self._connect()
        return self._conn


def until_started(rows: Callable[[str], list[Row]], count: int) -> None:
    """So many handlers run, as the workers' beats say: a claimed job is `running` in its row a little earlier."""
    running = "SELECT coalesce(sum(running), 0) AS jobs FROM workers WHERE stopped_at IS NULL"
    eventually(lambda: rows(running) == [{"jobs": count}])


FAULTS = """
WITH faults AS (
    SELECT 'live and dead at once' AS fault, j.id
      FROM jobs j
      JOIN dead_letter_jobs d ON d.original_job_id = j.id AND d.resolution IS NULL
    UNION ALL
    SELECT 'two successful runs', job_id
      FROM job_runs
     WHERE outcome = 'succeeded'
     GROUP BY job_id
    HAVING count(*) > 1
    UNION ALL
    SELECT 'running without a live worker', j.id
      FROM jobs j
      LEFT JOIN workers w ON w.id = j.locked_by AND w.stopped_at IS NULL
     WHERE j.status = 'running' AND j.lease_until IS NULL AND w.id IS NULL
    UNION ALL
    SELECT 'more attempts than allowed', r.job_id
      FROM job_runs r
      JOIN dead_letter_jobs d ON d.original_job_id = r.job_id
     WHERE r.outcome IN ('retried', 'dead') AND r.attempt > 0
     GROUP BY r.job_id, d.max_attempts
    HAVING count(*) > d.max_attempts
    UNION ALL
    SELECT 'two live jobs of one key', min(id)
      FROM jobs
     WHERE idempotency_key IS NOT NULL
     GROUP BY idempotency_key
    HAVING count(*) > 1
)
SELECT fault, id FROM faults ORDER BY fault, id
"""
"""Questions that must have no answer, whatever happened."""
