"""The server under test, and a fresh database on it for every measurement."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.machine import postmaster_of
from pgq_core.bench.statements import (
    BenchStatements,
    add_wal_inspection,
    create_database,
    drop_database,
    list_databases,
)
from pgq_core.database import connect_sync
from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate

SCHEMA = "pgq_core"
QUEUE = "bench"
PROGRAM = "pgq bench"
_PREFIX = "pgq_bench_"
EMBEDDED = "bench"
"""Name of the embedded server: one of the benchmark's own, so that no console's data lies beside it."""


@dataclass(frozen=True, slots=True)
class BenchDatabase:
    """A migrated, empty database with the connection that measures it."""

    dsn: str
    conn: Connection[Any]
    statements: BenchStatements

    def checkpoint(self) -> None:
        with contextlib.suppress(
            psycopg.errors.InsufficientPrivilege
        ):  # only some roles may; the figures are a bit wilder
            self.statements.checkpoint().execute_sync(self.conn)


class BenchServer:
    """Makes databases called `pgq_bench_<pid>_<number>` on one server."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._admin = connect_sync(dsn, application_name=PROGRAM, answer_within=0)
        self._template: str | None = None
        self._made = 0
        self.postmaster = postmaster_of(self._admin.info.backend_pid) if _is_local(self._admin) else None

    @property
    def settings(self) -> dict[str, str]:
        rows = BenchStatements(SCHEMA, QUEUE).read_server().fetch_all_sync(self._admin)
        return {row.name: row.value for row in rows}

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[BenchDatabase]:
        name = self._next_name()
        create_database(name, self._migrated_template()).execute_sync(self._admin)
        try:
            dsn = database_dsn(self._dsn, name)
            with connect_sync(dsn, application_name=PROGRAM, answer_within=0) as conn:
                yield BenchDatabase(dsn, conn, BenchStatements(SCHEMA, QUEUE))
        finally:
            drop_database(name).execute_sync(self._admin)

    def close(self) -> None:
        try:
            if self._template is not None:
                drop_database(self._template).execute_sync(self._admin)
        finally:
            self._admin.close()

    def drop_leftovers(self) -> None:
        """Databases of benchmarks that were killed and could not clean up; of this machine's own server only."""
        for name in list_databases(_PREFIX).fetch_all_sync(self._admin):
            owner = name.removeprefix(_PREFIX).partition("_")[0]
            if owner.isdecimal() and not psutil.pid_exists(int(owner)):
                drop_database(name).execute_sync(self._admin)

    def _migrated_template(self) -> str:
        if self._template is None:
            name = self._next_name()
            create_database(name, "template0").execute_sync(self._admin)
            self._template = name
            migrate(database_dsn(self._dsn, name), schema=SCHEMA)
            self._prepare_template(name)
        return self._template

    def _prepare_template(self, name: str) -> None:
        with (
            connect_sync(database_dsn(self._dsn, name), application_name=PROGRAM) as conn,
            contextlib.suppress(psycopg.Error),  # not there or not ours to add: WAL is then shown as a whole
        ):
            add_wal_inspection().execute_sync(conn)

    def _next_name(self) -> str:
        self._made += 1
        return f"{_PREFIX}{os.getpid()}_{self._made}"


@contextlib.contextmanager
def bench_server(dsn: str | None) -> Iterator[BenchServer]:
    """The server of `dsn`, or an embedded one while the block runs. Raises BenchFailed when it may not be used."""
    with contextlib.ExitStack() as stack:
        address = dsn if dsn is not None else stack.enter_context(EmbeddedServer(EMBEDDED).lease())
        server = BenchServer(address)
        stack.callback(server.close)
        if dsn is None:
            server.drop_leftovers()
        try:
            yield server
        except psycopg.errors.InsufficientPrivilege as error:
            raise BenchFailed(f"a benchmark makes a database of its own, and this role may not: {error}") from error


def database_dsn(server_dsn: str, name: str) -> str:
    """The same server, another database; a URL stays a URL."""
    if "://" not in server_dsn:
        return make_conninfo(server_dsn, dbname=name)
    return urlunsplit(urlsplit(server_dsn)._replace(path=f"/{name}"))


def _is_local(conn: Connection[Any]) -> bool:
    return conn.info.host.startswith("/") or conn.info.host in {"", "localhost", "127.0.0.1", "::1"}
