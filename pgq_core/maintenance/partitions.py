"""Partitions of `job_runs`: made ahead of time, dropped when their last day is past retention."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, sql

from pgq_core.database import first_line, is_pooled
from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.leadership import Leadership
from pgq_core.queries import Queries
from pgq_core.queries.piecemeal import is_refusal
from pgq_core.queries.upkeep import PartitionRow
from pgq_core.sql import partition_text

DAYS_AHEAD: Final = 7


class PartitionsAhead(Duty):
    """Also ends a detach that somebody broke off: its day takes no runs until it is attached again."""

    name = "partitions"

    async def work(self, conn: AsyncConnection[Any]) -> None:
        await self._make(conn)
        broken_off = await self._queries.list_pending_detaches().fetch_all(conn)
        for partition in broken_off:
            await self._finish_detach(conn, partition)
        if broken_off:
            await self._make(conn)

    async def _finish_detach(self, conn: AsyncConnection[Any], partition: str) -> None:
        try:
            await conn.execute(partition_statement("finish_detach", self._queries.schema, partition), prepare=False)
        except psycopg.Error as error:
            if not (is_refusal(error) or isinstance(error, psycopg.errors.LockNotAvailable)):
                raise
            self._logger.warning("detach_not_ended", partition=partition, error=first_line(error))
        else:
            self._logger.warning("detach_was_broken_off", partition=partition)

    async def _make(self, conn: AsyncConnection[Any]) -> None:
        made = await self._queries.ensure_partitions(days_ahead=DAYS_AHEAD).fetch_one(conn)
        if made:
            self._logger.info("partitions_made", count=made)


class ExpiredPartitions(Duty):
    """DETACH CONCURRENTLY, then DROP: whoever writes or reads other days is never blocked.

    A drop gives up at the connection's limit for locks: behind a long reader it would hold up all that come after it.
    """

    name = "expired_partitions"

    def __init__(self, leadership: Leadership, queries: Queries, *, interval: float, kept: float) -> None:
        super().__init__(leadership, queries, interval=interval)
        self._kept = timedelta(seconds=kept)

    async def work(self, conn: AsyncConnection[Any]) -> None:
        expired = await self._queries.list_expired_partitions(kept=self._kept).fetch_all(conn)
        if not expired:
            return
        if is_pooled(conn):  # its session has no limit for locks
            await self._drop_by_the_owners_rights(conn)
            return
        for partition in expired:
            try:
                await self._drop(conn, partition)
            except psycopg.errors.LockNotAvailable as error:
                self._logger.info("partition_drop_postponed", partition=partition.name, error=first_line(error))
                return
            except psycopg.errors.InsufficientPrivilege:
                await self._drop_by_the_owners_rights(conn)
                return
            except psycopg.Error as error:
                if not is_refusal(error):
                    raise
                self._logger.warning("partition_not_dropped", partition=partition.name, error=first_line(error))

    async def _drop(self, conn: AsyncConnection[Any], partition: PartitionRow) -> None:
        if partition.is_detach_pending:
            await self._run(conn, "finish_detach", partition)
        elif partition.is_attached:
            await self._run(conn, "detach", partition)
        await self._run(conn, "drop", partition)
        self._logger.info("partition_dropped", partition=partition.name)

    async def _drop_by_the_owners_rights(self, conn: AsyncConnection[Any]) -> None:
        """For who does not own the tables, or a pooler is before: one a turn, job_runs is locked for a moment."""
        try:
            name = await self._queries.drop_run_partition(kept=self._kept).fetch_one(conn)
            if name:
                self._logger.info("partition_dropped", partition=name)
        except psycopg.errors.LockNotAvailable as error:
            self._logger.info("partition_drop_postponed", error=first_line(error))
        except psycopg.errors.InsufficientPrivilege as error:
            self._logger.warning("partitions_not_dropped", error=first_line(error), remedy="see docs/rights.md")

    async def _run(self, conn: AsyncConnection[Any], name: str, partition: PartitionRow) -> None:
        await conn.execute(partition_statement(name, self._queries.schema, partition.name), prepare=False)


def partition_statement(name: str, schema: str, partition: str) -> sql.Composed:
    """Statements about a table take no parameters; its name comes from the catalogue."""
    return sql.SQL(partition_text(name)).format(schema=sql.Identifier(schema), partition=sql.Identifier(partition))
