"""What stops a migration before or while it runs, each as one sentence that says whose move is next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import Connection

from pgq_core.database import first_line, translated
from pgq_core.errors import (
    AdoptionRefused,
    MigrationBlocked,
    MissingRights,
    PgqError,
    SchemaChanged,
    SchemaError,
    SchemaForeign,
    SchemaTooNew,
    ServerUnfit,
)
from pgq_core.migrate.steps import Migration
from pgq_core.queries import Queries
from pgq_core.queries.schema import MigrationRow, RelationRow, StandingRow

VERSIONS_TABLE = "schema_migrations"

_TIME = "timestamp with time zone"
FIRST_FORM: Mapping[str, frozenset[str]] = {
    "jobs": frozenset(
        {
            "id bigint",
            "queue text",
            "payload jsonb",
            "idempotency_key text",
            "attempts integer",
            "max_attempts integer",
            f"not_before {_TIME}",
            "locked_by text",
            f"locked_at {_TIME}",
            f"created_at {_TIME}",
        }
    ),
    "dead_letter_jobs": frozenset(
        {
            "id bigint",
            "original_job_id bigint",
            "queue text",
            "payload jsonb",
            "last_error text",
            "attempts integer",
            f"died_at {_TIME}",
        }
    ),
    "job_runs": frozenset(
        {
            "id bigint",
            "job_id bigint",
            "worker_id text",
            f"started_at {_TIME}",
            f"finished_at {_TIME}",
            "success boolean",
            "error text",
        }
    ),
}
"""The columns of the three tables as step 1 makes them, and as it adopts them."""


def is_first_form(relation: RelationRow) -> bool:
    return relation.kind == "r" and FIRST_FORM.get(relation.name) == frozenset(relation.columns)


def refuse_other_versions(schema: str, applied: Sequence[MigrationRow], steps: Sequence[Migration]) -> None:
    """The database was migrated by a program that this one cannot follow, or by another text of the same step."""
    own = steps[-1].version
    needed = max((row.compatible_from for row in applied), default=0)
    if needed > own:
        raise SchemaTooNew(schema, max(row.version for row in applied), needed, own)
    shipped = {step.version: step.checksum for step in steps}
    for row in applied:
        if shipped.get(row.version, row.checksum) != row.checksum:
            raise SchemaChanged(schema, row.version)


def refuse_foreign_relations(schema: str, relations: Iterable[RelationRow], steps: Sequence[Migration]) -> None:
    """Something of a name that we need is there, although no step of ours was ever applied."""
    ours = frozenset[str]().union(*(step.relations for step in steps)) | {VERSIONS_TABLE}
    for relation in relations:
        if relation.name not in ours or is_first_form(relation):
            continue
        expected = FIRST_FORM.get(relation.name)
        if expected is None or relation.kind != "r":
            raise SchemaForeign(schema, relation.name, "it was there before pgq came")
        raise SchemaForeign(schema, relation.name, _difference(expected, relation.columns))


def refuse_missing_rights(
    schema: str, standing: StandingRow, relations: Iterable[RelationRow], steps: Sequence[Migration]
) -> None:
    role, database = standing.role, standing.database
    if not standing.schema_exists and not standing.may_create_schema:
        raise MissingRights(
            f'role "{role}" may not create schema "{schema}": it lacks CREATE on database "{database}"',
            f'an owner can: GRANT CREATE ON DATABASE "{database}" TO "{role}"',
        )
    if standing.schema_exists and not standing.may_create_tables:
        raise MissingRights(
            f'role "{role}" may not create tables in schema "{schema}": it lacks CREATE on the schema',
            f'an owner can: GRANT USAGE, CREATE ON SCHEMA "{schema}" TO "{role}"',
        )
    ours = frozenset[str]().union(*(step.relations for step in steps)) | {VERSIONS_TABLE}
    for relation in relations:
        if relation.name in ours and not relation.is_ours_to_change:
            raise MissingRights(
                f'role "{role}" may not change table "{schema}".{relation.name}: "{relation.owner}" owns it',
                f'run migrate as that role, or: ALTER TABLE "{schema}".{relation.name} OWNER TO "{role}"',
            )


def refusal(error: psycopg.Error, schema: str, conn: Connection[Any]) -> PgqError | psycopg.Error:
    """Our own sentence for an error that ended a step; the step's transaction has been rolled back."""
    message = first_line(error)
    match error.sqlstate:
        case "PQ003":
            return AdoptionRefused(error.diag.message_primary or message)
        case "PQ005":
            return ServerUnfit(error.diag.message_primary or message)
        case "55P03":
            return MigrationBlocked(f'the tables of schema "{schema}" are in use{_by_whom(schema, conn)}')
        case "42P07" | "42723" | "42710":
            return SchemaError(
                f'schema "{schema}" holds something of a name that pgq needs ({message}) and was left alone; '
                "choose another schema: pgq-core migrate --schema NAME"
            )
        case "2BP01":
            return SchemaError(f"{message}: {error.diag.message_detail or 'drop what depends on it'}")
        case _:
            return translated(error)


def _by_whom(schema: str, conn: Connection[Any]) -> str:
    holders = Queries(schema).list_lock_holders().fetch_all_sync(conn)
    if not holders:
        return ""
    named = (f"{row.application_name or 'a session'} (pid {row.pid}, {row.state or 'state hidden'})" for row in holders)
    return f" by {', '.join(named)}"


def _difference(expected: frozenset[str], columns: Sequence[str]) -> str:
    found = frozenset(columns)
    parts = []
    if missing := sorted(expected - found):
        parts.append(f"it lacks {', '.join(missing)}")
    if extra := sorted(found - expected):
        parts.append(f"it has {', '.join(extra)}")
    return " and ".join(parts)
