"""Brings a database to the schema this program needs: forward only, one transaction a step, one migrator at a time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import Connection, sql

from pgq_core.bounded import BoundedConnection
from pgq_core.database import connect_sync
from pgq_core.errors import MigrationBlocked, MissingRights, SchemaForeign
from pgq_core.migrate.refusals import (
    VERSIONS_TABLE,
    is_first_form,
    refusal,
    refuse_foreign_relations,
    refuse_missing_rights,
    refuse_other_versions,
)
from pgq_core.migrate.report import MigrationReport, search_path_line
from pgq_core.migrate.steps import Migration, concurrent_statement, lifted_timeouts, migrations, script
from pgq_core.queries import Queries
from pgq_core.queries.schema import MigrationRow, RelationRow, SearchPathRow
from pgq_core.sql import schema_statement

DEFAULT_SCHEMA = "pgq_core"
FIRST_FORM_SCHEMA = "public"
PROGRAM = "pgq-core migrate"

_LOCK_POLL = 0.05
_STEP_WITHIN = 86400.0
"""Seconds that a step over large tables may take; what is asked around it is answered at once or not at all."""


def migrate(dsn: str, schema: str = DEFAULT_SCHEMA) -> list[Migration]:
    """Applies what is missing; returns what was applied. Concurrent callers wait for each other.

    Raises a SchemaError with one sentence when the database is not ours to change; then nothing was changed.
    """
    return list(run_migrations(dsn, schema).applied)


def run_migrations(
    dsn: str,
    schema: str = DEFAULT_SCHEMA,
    *,
    set_search_path: bool = False,
    wait: timedelta = timedelta(minutes=5),
    steps: Sequence[Migration] | None = None,
) -> MigrationReport:
    """`migrate` with a report. `wait`: how long another migrator is waited for.

    `steps`: others than the shipped ones.
    """
    with connect_sync(dsn, application_name=PROGRAM) as conn:
        migrator = Migrator(conn, dsn, schema, steps=steps or migrations(), wait=wait)
        return migrator.run(set_search_path=set_search_path)


class Migrator:
    """One run over one schema."""

    def __init__(
        self, conn: BoundedConnection, dsn: str, schema: str, *, steps: Sequence[Migration], wait: timedelta
    ) -> None:
        self._conn = conn
        self._dsn = dsn
        self._schema = schema
        self._steps = steps
        self._queries = Queries(schema)
        self._wait = wait
        self._adopted: tuple[str, ...] = ()

    def run(self, *, set_search_path: bool) -> MigrationReport:
        try:
            self._execute(schema_statement("refuse_unfit_server", self._schema))
            applied = tuple(step for step in self._steps if self._apply(step))
            return self._report(applied, set_search_path=set_search_path)
        except psycopg.Error as error:
            raise refusal(error, self._schema, self._conn) from error

    def _apply(self, step: Migration) -> bool:
        with self._locked_transaction():
            relations = self._queries.list_relations().fetch_all_sync(self._conn)
            applied = self._applied_steps(relations)
            refuse_other_versions(self._schema, applied, self._steps)
            if any(row.version == step.version for row in applied):
                return False
            self._prepare(relations, is_first=not applied)
            if step.is_concurrent:
                self._run_concurrently(step)
            with self._patience():
                self._execute(script(step, self._schema, is_first=not applied))
        if not applied:
            self._adopted = tuple(row.name for row in relations if is_first_form(row))
        return True

    @contextlib.contextmanager
    def _locked_transaction(self) -> Iterator[None]:
        deadline = time.monotonic() + self._wait.total_seconds()
        while True:
            with self._conn.transaction():
                if self._queries.try_migration_lock().fetch_one_sync(self._conn):
                    yield
                    return
            if time.monotonic() > deadline:
                raise MigrationBlocked(
                    f'another program has been migrating schema "{self._schema}" for more than {self._wait}'
                )
            time.sleep(_LOCK_POLL)

    def _applied_steps(self, relations: Sequence[RelationRow]) -> list[MigrationRow]:
        versions = next((row for row in relations if row.name == VERSIONS_TABLE), None)
        if versions is None:
            return []
        names = {column.partition(" ")[0] for column in versions.columns}
        if not {"version", "name", "checksum", "compatible_from"} <= names:
            raise SchemaForeign(self._schema, VERSIONS_TABLE, f"it has the columns {', '.join(sorted(names))}")
        return self._queries.list_migrations().fetch_all_sync(self._conn)

    def _prepare(self, relations: Sequence[RelationRow], *, is_first: bool) -> None:
        standing = self._queries.read_standing().fetch_one_sync(self._conn)
        if standing is None:
            raise AssertionError("a SELECT over one constant row has one row")
        if is_first:
            refuse_foreign_relations(self._schema, relations, self._steps)
        refuse_missing_rights(self._schema, standing, relations, self._steps)
        if not standing.schema_exists:  # asked first: IF NOT EXISTS wants the right to create even where it would not
            self._execute(schema_statement("create_schema", self._schema))

    def _run_concurrently(self, step: Migration) -> None:
        """On a connection of its own, outside a transaction, while ours holds the lock and, idle, no snapshot."""
        self._execute(lifted_timeouts(self._schema))
        with connect_sync(
            self._dsn, application_name=PROGRAM, statement_timeout=0, answer_within=_STEP_WITHIN
        ) as other:
            index = step.concurrent_index
            if index is not None and self._queries.has_invalid_index(index).fetch_one_sync(other):
                other.execute(schema_statement("drop_index", self._schema, index=sql.Identifier(index)))
            other.execute(concurrent_statement(step, self._schema))

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        usual, self._conn.answer_within = self._conn.answer_within, _STEP_WITHIN
        try:
            yield
        finally:
            self._conn.answer_within = usual

    def _report(self, applied: tuple[Migration, ...], *, set_search_path: bool) -> MigrationReport:
        path = self._queries.read_search_path().fetch_one_sync(self._conn)
        if path is None:
            raise AssertionError("a SELECT without FROM has one row")
        is_set = set_search_path and path.schema_of_jobs is None
        if is_set:
            self._set_search_path(path)
        versions = self._queries.list_migrations().fetch_all_sync(self._conn)
        return MigrationReport(
            schema=self._schema,
            version=max(row.version for row in versions),
            applied=applied,
            adopted=self._adopted,
            first_form_in=self._first_form_elsewhere(),
            search_path=path,
            is_search_path_set=is_set,
        )

    def _set_search_path(self, path: SearchPathRow) -> None:
        line = search_path_line(self._schema, path)
        try:
            self._execute(line)
        except psycopg.errors.InsufficientPrivilege as error:
            raise MissingRights(
                f'this role may not set the search_path of database "{path.database}", which it does not own',
                f"the schema is migrated; the owner can: {line}",
            ) from error

    def _first_form_elsewhere(self) -> str | None:
        if self._schema == FIRST_FORM_SCHEMA or not has_first_form(self._conn, FIRST_FORM_SCHEMA):
            return None
        return FIRST_FORM_SCHEMA

    def _execute(self, text: str) -> None:
        self._conn.execute(text)


def has_first_form(conn: Connection[Any], schema: str = FIRST_FORM_SCHEMA) -> bool:
    """Whether the schema holds a jobs table of the first form, which `migrate` would adopt."""
    relations = Queries(schema).list_relations().fetch_all_sync(conn)
    return any(row.name == "jobs" and is_first_form(row) for row in relations)
