"""Room of finished jobs, given back while it is still in memory.

Each job leaves two dead rows and their index entries, and autovacuum comes by once a minute as a rule. At 25,000 jobs
a second the table has grown by half a gigabyte until then, all of it written to disk, and commits wait behind that. A
vacuum every few seconds finds everything in memory and keeps a busy table at some tens of megabytes. What it leaves
alone is autovacuum's as ever.
"""

from __future__ import annotations

import time
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, sql

from pgq_core.database import first_line, is_pooled
from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries
from pgq_core.queries.upkeep import DeadRowsRow
from pgq_core.sql import schema_statement

FEWEST: Final = 50_000
"""Dead rows below which autovacuum is soon enough."""
LARGEST: Final = 2**30
"""Bytes: a larger table takes too long for a connection that other duties wait for."""
LARGEST_LIVE: Final = 5
"""Live rows per dead one: in a long backlog the indexes are large, and walking them is not worth a few dead rows."""
SUSTAINED: Final = 3.0
"""Seconds that they have to be many for: a burst is over before that, and what it left is not worth slowing it down."""
RESTS: Final = 20.0
"""Times as long as the last vacuum took: so long a rest is the least before the next."""
LONGEST_REST: Final = 60.0
"""Seconds between vacuums that remove less than half, as behind a held snapshot. Autovacuum tries as often."""


LIMIT_MS: Final = 2000
"""Somebody may stand still in a page, in the middle of a result for example: a vacuum waits for him, and the reaper
would wait with it."""
_REMEDY: Final = "autovacuum goes on; if it happens again and again, somebody reads the table and stands still"


class JobsVacuum(Duty):
    """Often, so that each is short: a vacuum takes a core from the workers for as long as it lasts."""

    name = "vacuum"

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float, schema: str) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._begin = schema_statement("limit_vacuum", schema, milliseconds=sql.Literal(LIMIT_MS)).encode()
        self._vacuum = schema_statement("vacuum_jobs", schema).encode()
        self._end = schema_statement("unlimit_vacuum", schema).encode()
        self._many_since: float | None = None
        self._in_vain = 0
        """Vacuums in a row that removed little."""

    async def work(self, conn: AsyncConnection[Any]) -> None:
        if not self.is_rested() or is_pooled(conn):  # a pooler would hand our settings on to somebody else
            return
        before = await self._look(conn)
        if before is None or not is_worth_it(before):
            self._many_since = None
            return
        now = time.monotonic()
        self._many_since = self._many_since or now
        if now - self._many_since >= SUSTAINED:
            await self._remove(conn, before)

    async def _remove(self, conn: AsyncConnection[Any], before: DeadRowsRow) -> None:
        began = time.monotonic()
        self.rest(LONGEST_REST)  # whatever comes now, a session that an administrator's limit ends included
        try:
            await conn.execute(self._begin, prepare=False)
            await conn.execute(self._vacuum, prepare=False)
        except psycopg.errors.QueryCanceled as error:
            self._logger.info("vacuum_broken_off", error=first_line(error), remedy=_REMEDY)
        finally:
            if not conn.closed:
                await conn.execute(self._end, prepare=False)
        seconds = time.monotonic() - began
        after = await self._look(conn)
        left = 0 if after is None else after.dead
        self._in_vain = self._in_vain + 1 if left > before.dead / 2 else 0
        self.rest(max(RESTS * seconds, min(SUSTAINED * 2.0**self._in_vain, LONGEST_REST)))
        self._logger.debug("jobs_vacuumed", seconds=round(seconds, 3), dead_before=before.dead, dead_after=left)

    async def _look(self, conn: AsyncConnection[Any]) -> DeadRowsRow | None:
        return await self._queries.read_dead_rows().fetch_one(conn)


def is_worth_it(rows: DeadRowsRow) -> bool:
    """Whether they are many, make up the table, and can be removed by us within a second or so."""
    is_most = rows.dead * LARGEST_LIVE >= rows.live
    return rows.may_vacuum and rows.dead >= FEWEST and is_most and rows.bytes <= LARGEST
