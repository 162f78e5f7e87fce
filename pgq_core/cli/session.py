"""What a command works with: settings, the database in use, one connection, the read side and the verbs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import typer
from psycopg import AsyncConnection

from pgq_core.cli.given import settings_of
from pgq_core.database import connect
from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.operation import Preview, PurgePreview
from pgq_core.errors import ReadOnlyRefused
from pgq_core.inspector import Inspector
from pgq_core.migrate import check_schema_async
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from pgq_core.runtime import Database, use_database
from pgq_core.settings import Settings

T = TypeVar("T")

APPLICATION = "pgq-core"


@dataclass(frozen=True, slots=True)
class Session:
    """One command's view of the database."""

    settings: Settings
    database: Database
    conn: AsyncConnection[Any]
    queries: Queries
    inspector: Inspector
    _operations: Operations = field(repr=False)

    @property
    def operations(self) -> Operations:
        """The verbs. Raises ReadOnlyRefused in a session that may only look."""
        if self.settings.read_only:
            raise ReadOnlyRefused
        return self._operations

    async def preview(self, filters: DeadLetterFilters, *, limit: int | None = None) -> Preview:
        """What a bulk verb would act on; looking is always allowed."""
        return await self._operations.preview(self.conn, filters, limit=limit)

    async def preview_purge(self, queue: str) -> PurgePreview:
        return await self._operations.preview_purge(self.conn, queue)

    async def database_time(self) -> datetime:
        """The only clock that decides anything about a row."""
        (server,) = await self.queries.read_server().fetch_all(self.conn)
        return server.taken_at


def run(ctx: typer.Context, work: Callable[[Session], Awaitable[T]]) -> T:
    """Runs `work` with an open session, and closes everything behind it."""
    settings = settings_of(ctx)
    # The embedded server prepares itself; any other database is checked over the session's own connection.
    with use_database(settings, check=not settings.dsn) as database:
        return asyncio.run(_with_session(settings, database, work))


async def _with_session(settings: Settings, database: Database, work: Callable[[Session], Awaitable[T]]) -> T:
    async with open_session(settings, database) as session:
        return await work(session)


@contextlib.asynccontextmanager
async def open_session(settings: Settings, database: Database) -> AsyncIterator[Session]:
    conn = await connect(
        database.dsn,
        application_name=APPLICATION,
        read_only=settings.read_only,
        answer_within=settings.answer_within,
    )
    try:
        if not database.is_embedded:
            await check_schema_async(conn, database.schema)
        queries = Queries(database.schema)
        yield Session(
            settings,
            database,
            conn,
            queries,
            Inspector(queries, stale_limit=timedelta(seconds=settings.stale_limit)),
            Operations(queries, operator=settings.operator),
        )
    finally:
        await conn.close()
