"""Migrated databases, lent to one test after the other: emptying one costs a tenth of copying and dropping another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg import sql

from tests.support.databases import create_database, database_dsn, drop_database, new_name

MOST_ROWS: Final = 1000
"""With more dead rows than these a table is no longer like a new one."""
_LONGEST_TRY: Final = "20s"

# Every definition in the database, and what the planner knows. Rows that were changed have a newer xmin.
_DEFINITIONS = (
    "pg_class",
    "pg_attribute",
    "pg_attrdef",
    "pg_constraint",
    "pg_index",
    "pg_inherits",
    "pg_proc",
    "pg_trigger",
    "pg_type",
    "pg_rewrite",
    "pg_policy",
    "pg_namespace",
    "pg_extension",
    "pg_default_acl",
    "pg_statistic",
    "pg_sequence",
)
_FINGERPRINT = (
    "SELECT "
    + ", ".join(
        f"(SELECT (count(*), max(xmin::text::bigint), min(xmin::text::bigint))::text FROM pg_catalog.{name})"
        for name in _DEFINITIONS
    )
    + ", (SELECT sum(reltuples)::text FROM pg_catalog.pg_class WHERE reltuples > 0 AND relname NOT LIKE 'pg\\_%')"
    ", (SELECT (datacl, datconnlimit)::text FROM pg_catalog.pg_database WHERE datname = current_database())"
    ", (SELECT array_agg((setrole, setconfig)::text ORDER BY setrole) FROM pg_catalog.pg_db_role_setting AS s"
    "    JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase WHERE datname = current_database())"
)
_OWN_TABLES = """
SELECT oid::regclass::text FROM pg_catalog.pg_class
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"""
_TABLES = """
SELECT oid::regclass::text FROM pg_catalog.pg_class
 WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY 1"""
_SEQUENCES = """
SELECT seqrelid::regclass::text, seqstart FROM pg_catalog.pg_sequence
  JOIN pg_catalog.pg_class ON pg_class.oid = seqrelid WHERE relnamespace = %s::regnamespace ORDER BY 1"""


class Lender:
    """Makes a database when none is free, and takes back only what is as it was."""

    def __init__(self, server_dsn: str, template: str, schema: str) -> None:
        self._server_dsn = server_dsn
        self._template = template
        self._schema = schema
        self._free: list[str] = []
        self._admin = psycopg.connect(server_dsn, autocommit=True)
        self._original: tuple[Any, ...] | None = None
        self._kept: dict[str, str] = {}
        """Tables that are not empty after the migration, and what is in them."""

    @contextlib.contextmanager
    def lend(self) -> Iterator[str]:
        """The address of a migrated database without rows; afterwards nobody reaches it at this address."""
        name = self._free.pop() if self._free else self._new()
        try:
            yield database_dsn(self._server_dsn, name)
        finally:
            self._take_back(name)

    def close(self) -> None:
        self._admin.close()
        for name in self._free:
            drop_database(self._server_dsn, name)

    def _new(self) -> str:
        name = create_database(self._server_dsn, template=self._template, search_path=self._schema)
        if self._original is None:
            with self._session(name) as conn:
                self._original = conn.execute(_FINGERPRINT).fetchone()
                self._kept = {table: text for table in self._tables(conn) if (text := _content(conn, table))}
        return name

    def _take_back(self, name: str) -> None:
        emptied = new_name()
        try:
            self._rename(name, emptied)
        except psycopg.Error:  # somebody holds on to it
            drop_database(self._server_dsn, name)
            return
        try:
            is_as_new = self._restore(emptied)
        except psycopg.Error:
            is_as_new = False
        if is_as_new:
            self._free.append(emptied)
        else:
            drop_database(self._server_dsn, emptied)

    def _rename(self, name: str, other: str) -> None:
        """A process that a test has left behind must not come back to it."""
        if self._admin.closed:
            self._admin = psycopg.connect(self._server_dsn, autocommit=True)
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        self._admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (name, other))))

    def _restore(self, name: str) -> bool:
        """Whether it is now as it was after the migration."""
        with self._session(name) as conn:
            for (table,) in conn.execute(_OWN_TABLES).fetchall():
                conn.execute(f"DROP TABLE {table} CASCADE")
            if conn.execute(_FINGERPRINT).fetchone() != self._original:
                return False
            conn.execute("SET session_replication_role = replica")  # no trigger, no foreign key
            for table in self._tables(conn):
                if table in self._kept:
                    if _content(conn, table) != self._kept[table]:
                        return False
                elif conn.execute(f"DELETE FROM {table}").rowcount > MOST_ROWS:
                    return False
            for sequence, start in conn.execute(_SEQUENCES, [self._schema]).fetchall():
                conn.execute("SELECT setval(%s::regclass, %s, false)", [sequence, start])
            conn.execute("SELECT pg_stat_reset()")
        return True

    def _tables(self, conn: psycopg.Connection[Any]) -> list[str]:
        return [table for (table,) in conn.execute(_TABLES, [self._schema])]

    @contextlib.contextmanager
    def _session(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        # Whatever search_path a test has given to its database: names are qualified.
        options = f"-c search_path=pg_catalog -c lock_timeout={_LONGEST_TRY}"
        with psycopg.connect(database_dsn(self._server_dsn, name), options=options, autocommit=True) as conn:
            yield conn


def _content(conn: psycopg.Connection[Any], table: str) -> str | None:
    row = conn.execute(f"SELECT string_agg(t::text, '|' ORDER BY t::text) FROM {table} AS t").fetchone()
    return row[0] if row else None
