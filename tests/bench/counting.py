"""A server that counts statements, and what a batch of jobs costs on it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgq_core.migrate import migrate
from pgq_core.sql import composed_query, query_names
from tests.conftest import SCHEMA
from tests.support.databases import FAST, database_name, new_database, ready_server

OWN_NAME = "counting"

_STATEMENTS = """
SELECT query, calls, rows, wal_bytes::float8, shared_blks_hit + shared_blks_read
  FROM pg_stat_statements
 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND toplevel"""
_ROWS = """
SELECT regexp_replace(relname, '_[0-9]{8}$', ''),
       sum(n_tup_ins)::int, sum(n_tup_upd)::int, sum(n_tup_del)::int, sum(seq_scan)::int
  FROM pg_stat_user_tables WHERE schemaname = %s GROUP BY 1"""


@dataclass(frozen=True, slots=True)
class StatementCost:
    """Of all calls of one statement."""

    calls: int = 0
    rows: int = 0
    wal_bytes: float = 0.0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class RowCost:
    """Row versions written in one table, and how often it was read whole."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    scans: int = 0


class CountingDatabase:
    """Counts from `reset` on. Sessions report rows when they end: ask for rows when the others have gone."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._conn = psycopg.connect(dsn, autocommit=True, application_name=OWN_NAME)
        self._conn.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public")
        self._names = {_shape(composed_query(name, SCHEMA)): name for name in query_names()}

    def close(self) -> None:
        self._conn.close()

    def execute(self, statement: str, *parameters: object) -> None:
        self._conn.execute(statement, parameters)

    def fill(self, jobs: int, job_type: str = "noop") -> None:
        self.execute(
            "INSERT INTO jobs (payload) SELECT jsonb_build_object('type', %s::text, 'data', jsonb_build_object('n', n))"
            " FROM generate_series(1, %s) AS n",
            job_type,
            jobs,
        )
        self.execute("VACUUM (ANALYZE) jobs")

    def is_empty(self) -> bool:
        return not self._value("SELECT EXISTS (SELECT FROM jobs)")

    def runs(self) -> int:
        return self._value("SELECT count(*)::int FROM job_runs")

    def reset(self) -> None:
        self.execute("SELECT pg_stat_force_next_flush()")
        self.execute("SELECT pg_stat_reset()")
        self.execute("SELECT public.pg_stat_statements_reset()")

    def statements(self) -> dict[str, StatementCost]:
        """Of our own statements, by name; everything else together as "other"."""
        found: dict[str, StatementCost] = {}
        for query, *costs in self._conn.execute(_STATEMENTS).fetchall():
            name = self._names.get(_shape(query), "other")
            before = found.get(name, StatementCost())
            found[name] = StatementCost(
                before.calls + costs[0], before.rows + costs[1], before.wal_bytes + costs[2], before.blocks + costs[3]
            )
        return found

    def rows(self) -> dict[str, RowCost]:
        self.execute("SELECT pg_stat_force_next_flush()")
        return {table: RowCost(*counts) for table, *counts in self._conn.execute(_ROWS, (SCHEMA,)).fetchall()}

    def others(self) -> int:
        """Sessions that have not ended yet."""
        return self._value(
            "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name <> %s"
            " AND backend_type = 'client backend'",
            OWN_NAME,
        )

    def waiting(self) -> int:
        """Workers that sleep and want to be woken."""
        return self._value("SELECT count(*)::int FROM worker_waits WHERE waiting")

    def _value(self, statement: str, *parameters: object) -> int:
        row = self._conn.execute(statement, parameters).fetchone()
        assert row is not None
        value: int = row[0]
        return value


def _shape(text: str) -> str:
    """The beginning of a statement without its comments and constants, which the server leaves out of its account."""
    bare = re.sub(r"--[^\n]*", " ", text)
    bare = re.sub(r"%\(\w+\)s|\$\d+|'[^']*'|\b\d+\b|\b(?:true|false|NULL)\b", "?", bare)
    return " ".join(bare.split())[:300]


@contextlib.contextmanager
def counting_server(home: Path) -> Iterator[str]:
    settings = FAST | {"shared_preload_libraries": "pg_stat_statements", "autovacuum": "off"}
    with ready_server("counting", home, settings).lease() as dsn:
        yield dsn


@contextlib.contextmanager
def migrated_template(server_dsn: str) -> Iterator[str]:
    """The name of a database to be copied."""
    with new_database(server_dsn) as dsn:
        migrate(dsn, SCHEMA)
        yield database_name(dsn)


@contextlib.contextmanager
def counting_database(server_dsn: str, template: str) -> Iterator[CountingDatabase]:
    with new_database(server_dsn, template=template, search_path=SCHEMA) as dsn:
        database = CountingDatabase(dsn)
        yield database
        database.close()
