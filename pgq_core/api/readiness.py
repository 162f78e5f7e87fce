"""Whether this server can serve: found out in the background, so that the answer never waits for the database."""

from __future__ import annotations

import time
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.errors import SchemaError
from pgq_core.migrate import check_schema_async
from pgq_core.queries import Queries
from pgq_core.service import PeriodicService

_STATEMENT_TIMEOUT: Final = 0.9
_FRESH_FOR: Final = 3.0


class Readiness(PeriodicService):
    """Looks once a second, at the table that everything rests on: a lock on it counts as not ready."""

    name = "readiness"

    def __init__(self, dsn: str, schema: str) -> None:
        super().__init__(interval=1.0)
        self._dsn = dsn
        self._schema = schema
        self._queries = Queries(schema)
        self._conn: AsyncConnection[Any] | None = None
        self._seen_at: float | None = None
        self._fault: str = "the database has not answered yet"

    @property
    def fault(self) -> str | None:
        """Why this server cannot serve; None when it can."""
        if self._seen_at is not None and time.monotonic() - self._seen_at < _FRESH_FOR:
            return None
        return self._fault

    async def run_once(self) -> None:
        try:
            await self._look()
        except SchemaError as error:
            # Nothing that goes away by itself, but also nothing to shout about once a second.
            self._seen_at, self._fault = None, str(error)
            await self.stopped()
        except Exception:
            self._seen_at, self._fault = None, "the database cannot be reached, or jobs are locked"
            await self.stopped()
            raise

    async def stopped(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            await conn.close()

    async def _look(self) -> None:
        if self._conn is None or self._conn.closed:
            self._conn = await connect(
                self._dsn, application_name="pgq api probe", statement_timeout=_STATEMENT_TIMEOUT, read_only=True
            )
            await check_schema_async(self._conn, self._schema)
        await self._queries.probe_jobs().fetch_one(self._conn)
        self._seen_at = time.monotonic()
