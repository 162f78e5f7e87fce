"""The question that every program asks at its start: is this schema one that it can work on?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection

from pgq_core.database import first_line, translated
from pgq_core.errors import (
    MissingRights,
    PgqError,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    ServerUnfit,
)
from pgq_core.migrate.refusals import VERSIONS_TABLE
from pgq_core.migrate.steps import newest_version
from pgq_core.queries import Queries
from pgq_core.queries.schema import MigrationRow

USUAL_SCHEMAS = ("pgq_core", "public")
"""Where the tables may be when they are not where they were looked for."""


def check_schema(conn: Connection[Any], schema: str) -> int:
    """The schema's version; raises a SchemaError when this program cannot work on it.

    The connection must be in autocommit mode: a missing table would spoil its transaction.
    """
    _refuse_other_encodings(conn.info)
    try:
        applied = Queries(schema).list_migrations().fetch_all_sync(conn)
    except psycopg.Error as error:
        raise _misfit(error, schema, conn.info.user) from error
    return _judge(applied, schema)


async def check_schema_async(conn: AsyncConnection[Any], schema: str) -> int:
    """The asynchronous face of `check_schema`."""
    _refuse_other_encodings(conn.info)
    try:
        applied = await Queries(schema).list_migrations().fetch_all(conn)
    except psycopg.Error as error:
        raise _misfit(error, schema, conn.info.user) from error
    return _judge(applied, schema)


def _judge(applied: Sequence[MigrationRow], schema: str) -> int:
    if not applied:
        raise SchemaMissing(schema)
    version = max(row.version for row in applied)
    compatible_from = max(row.compatible_from for row in applied)
    own = newest_version()
    if compatible_from > own:
        raise SchemaTooNew(schema, version, compatible_from, own)
    if version < own:
        raise SchemaOutdated(schema, version, own)
    return version


def _refuse_other_encodings(info: psycopg.ConnectionInfo) -> None:
    encoding = info.parameter_status("server_encoding")
    if encoding not in {None, "UTF8"}:
        raise ServerUnfit(
            f'database "{info.dbname}" is encoded in {encoding}, which cannot hold every payload: '
            "use a database created with ENCODING UTF8"
        )


def _misfit(error: psycopg.Error, schema: str, role: str) -> PgqError | psycopg.Error:
    match error:
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
            return SchemaMissing(schema)
        case psycopg.errors.UndefinedColumn():
            return SchemaForeign(schema, VERSIONS_TABLE, first_line(error))
        case psycopg.errors.InsufficientPrivilege():
            return MissingRights(
                f'role "{role}" may not read "{schema}".{VERSIONS_TABLE} ({first_line(error)})',
                "its owner can grant what docs/rights.md lists",
            )
        case _:
            return translated(error)
