"""A peer's database: made from a template before every measurement, so that no run inherits bloat; and its counters."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from harness.peers import Peer

OWN_NAME = "bench-run"
_GONE_SECONDS = 5.0

_COUNTERS = """
SELECT coalesce(sum(n_tup_ins), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint,
       coalesce(sum(n_tup_hot_upd), 0)::bigint, coalesce(sum(n_tup_del), 0)::bigint,
       coalesce(sum(n_dead_tup), 0)::bigint,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
  FROM pg_stat_user_tables"""
_STATEMENTS = """
SELECT coalesce(sum(calls), 0)::bigint
  FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
 WHERE datname = current_database() AND query NOT LIKE '%pg_stat_%'"""
_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> %s"""
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"


@dataclass(frozen=True, slots=True)
class Counters:
    """Of one database so far."""

    inserted: int
    updated: int
    updated_in_place: int
    deleted: int
    dead: int
    commits: int


class PeerDatabase:
    """`with` makes the template and drops everything in the end; `fresh()` gives a copy."""

    def __init__(self, server: str, peer: Peer) -> None:
        self._server = server
        self._peer = peer
        self._name = f"bench_{peer.name.replace('-', '_')}"
        self._template = f"{self._name}_template"
        self.dsn = _url(server, self._name)
        self._conn: psycopg.Connection | None = None

    def __enter__(self) -> PeerDatabase:
        self.drop()
        self._administer("CREATE DATABASE {}", self._template)
        dsn = _url(self._server, self._template)
        self._peer.call("setup", "--dsn", dsn)
        with psycopg.connect(dsn, autocommit=True) as conn, contextlib.suppress(psycopg.Error):
            conn.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Nothing of an earlier run, and nothing left to be written by a checkpoint."""
        self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", self._name)
        self._administer("CREATE DATABASE {} TEMPLATE {}", self._name, self._template)
        with psycopg.connect(self.dsn, autocommit=True, application_name=OWN_NAME) as self._conn:
            self._conn.execute("CHECKPOINT")
            yield

    def drop(self) -> None:
        for name in (self._name, self._template):
            self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def analyze(self) -> None:
        self._connection.execute("VACUUM (ANALYZE)")

    def is_unfinished(self) -> bool:
        return bool(self._one(self._peer.about["unfinished_sql"]))

    def wal_bytes(self) -> float:
        return float(self._one(_WAL))

    def connections(self) -> int:
        return int(self._one(_CONNECTIONS, OWN_NAME))

    def statements(self) -> int | None:
        """None without pg_stat_statements."""
        try:
            return int(self._one(_STATEMENTS))
        except psycopg.Error:
            return None

    def counters(self) -> Counters:
        self._connection.execute("SELECT pg_stat_force_next_flush()")
        row = self._connection.execute(_COUNTERS).fetchone()
        return Counters(*row)

    def wait_until_alone(self) -> None:
        """A backend reports its counters when it ends at the latest: read them when the workers have gone."""
        deadline = time.monotonic() + _GONE_SECONDS
        while self.connections() and time.monotonic() < deadline:
            time.sleep(0.02)

    @property
    def _connection(self) -> psycopg.Connection:
        if self._conn is None:
            raise RuntimeError("no fresh database is open")
        return self._conn

    def _one(self, statement: str, *parameters: object) -> object:
        row = self._connection.execute(statement, parameters or None).fetchone()
        return row[0]

    def _administer(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _url(server: str, database: str) -> str:
    """The one form that every peer takes: TCP, user and password in front. Some take a socket's directory too."""
    parts = conninfo_to_dict(server)
    host, port = str(parts.get("host", "127.0.0.1")), parts.get("port", 5432)
    user = quote(str(parts.get("user", "postgres")))
    password = f":{quote(str(parts['password']))}" if parts.get("password") else ""
    if host.startswith("/"):
        return f"postgresql://{user}{password}@/{database}?host={quote(host, safe='')}&port={port}"
    return f"postgresql://{user}{password}@{host}:{port}/{database}"
