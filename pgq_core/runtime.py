"""Which database a program uses, and that it is ready: the one given, or the embedded server under a lease."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection, Connection

from pgq_core.database import connect_sync
from pgq_core.errors import DatabaseUnavailable, SchemaError, SchemaMissing, SchemaOutdated
from pgq_core.migrate import check_schema, check_schema_async, run_migrations
from pgq_core.settings import Settings

if TYPE_CHECKING:
    from pgq_core.embedded import EmbeddedServer

EMBEDDED = "main"
"""Name of the embedded server that serves when no address is given."""
OTHER_SCHEMA = "public"


@dataclass(frozen=True, slots=True)
class Database:
    """A database in use, with the schema our tables are in."""

    dsn: str
    schema: str
    is_embedded: bool


@contextlib.contextmanager
def use_database(
    settings: Settings,
    *,
    check: bool = True,
    waits: bool = False,
    find_schema: bool = True,
    on_silence: Callable[[str], None] | None = None,
) -> Iterator[Database]:
    """The database of `settings`, for as long as the block runs.

    The embedded one is started when needed and migrates itself; any other is only checked (unless `check` is False):
    its schema is its owner's to change. Where nobody named a schema, the one that holds our tables is found (unless
    `find_schema` is False). With `waits`, a database that is only away now is left to the caller, who waits for it.
    `on_silence` is told when the embedded server does not answer at the end.
    Raises a SchemaError that says what to do, or DatabaseUnavailable.
    """
    if settings.dsn:
        schema = schema_in_use(settings) if find_schema else settings.db_schema
        database = Database(settings.dsn, schema, is_embedded=False)
        if check:
            with contextlib.suppress(*((DatabaseUnavailable,) if waits else ())):
                check_database(database)
        yield database
        return
    with embedded_server().lease(on_silence=on_silence) as dsn:
        database = Database(dsn, settings.db_schema, is_embedded=True)
        if check:
            prepare_embedded(database)
        yield database


def schema_in_use(settings: Settings) -> str:
    """The schema that was named; where nobody named one, `public` when our tables are there and not in the usual one.

    So `migrate --schema public` is said once, and what works on that database afterwards finds its tables.
    """
    if settings.dsn is None or "db_schema" in settings.model_fields_set:
        return settings.db_schema
    # A database that is away is the caller's to wait for or to report.
    with (
        contextlib.suppress(DatabaseUnavailable),
        connect_sync(settings.dsn, application_name="pgq schema check", answer_within=settings.answer_within) as conn,
    ):
        if not _holds_tables(conn, settings.db_schema) and _holds_tables(conn, OTHER_SCHEMA):
            return OTHER_SCHEMA
    return settings.db_schema


async def find_schema(conn: AsyncConnection[Any], schema: str) -> str:
    """The same over a connection that is open already, for a schema that nobody named."""
    if not await _holds_tables_async(conn, schema) and await _holds_tables_async(conn, OTHER_SCHEMA):
        return OTHER_SCHEMA
    return schema


def check_database(database: Database) -> int:
    """The schema's version; raises a SchemaError when this program cannot work on it."""
    with connect_sync(database.dsn, application_name="pgq schema check") as conn:
        return check_schema(conn, database.schema)


def _holds_tables(conn: Connection[Any], schema: str) -> bool:
    """Also tables that this program cannot work on: the check that follows says why."""
    try:
        check_schema(conn, schema)
    except SchemaMissing:
        return False
    except SchemaError:
        return True
    return True


async def _holds_tables_async(conn: AsyncConnection[Any], schema: str) -> bool:
    try:
        await check_schema_async(conn, schema)
    except SchemaMissing:
        return False
    except SchemaError:
        return True
    return True


def prepare_embedded(database: Database) -> int:
    """Brings the embedded database to the schema this program needs; plain SQL finds its tables by their bare names."""
    try:
        return check_database(database)
    except (SchemaMissing, SchemaOutdated):
        return run_migrations(database.dsn, database.schema, set_search_path=True).version


def embedded_server() -> EmbeddedServer:
    from pgq_core.embedded import EmbeddedServer

    return EmbeddedServer(EMBEDDED)
