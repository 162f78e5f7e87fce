"""Verbs on pools and workers. They write what is wanted; the supervisor or keeper of that host carries it out."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.operation import ActionResult
from pgq_core.operations.journal import Action
from pgq_core.operations.verbs import Verbs, stored_reason


class FleetVerbs(Verbs):
    async def scale(
        self, conn: AsyncConnection[Any], host: str, pool: str, wanted: int, *, reason: str | None = None
    ) -> ActionResult:
        """How many workers a pool is to have. Refused outside the pool's bounds."""
        return await self._scale(conn, Action("scale", _pool(host, pool), stored_reason(reason)), host, pool, wanted)

    async def scale_by(
        self, conn: AsyncConnection[Any], host: str, pool: str, change: int, *, reason: str | None = None
    ) -> ActionResult:
        """So many workers more (or fewer) than are wanted now: two operators who press + twice get two workers."""
        action = Action("scale", _pool(host, pool), stored_reason(reason))
        return await self._scale(conn, action, host, pool, change, is_change=True)

    async def drain_pool(
        self, conn: AsyncConnection[Any], host: str, pool: str, *, reason: str | None = None
    ) -> ActionResult:
        """No workers any more: what runs is finished first. Refused when the host demands a minimum."""
        return await self._scale(conn, Action("drain_pool", _pool(host, pool), stored_reason(reason)), host, pool, 0)

    async def restart_pool(
        self, conn: AsyncConnection[Any], host: str, pool: str, *, reason: str | None = None
    ) -> ActionResult:
        """Replaces every worker of a pool, each once it has drained; a pool in a crash loop tries again at once."""
        async with conn.transaction():
            if await self._queries.lock_pool(host=host, pool=pool).fetch_one(conn) is None:
                return ActionResult(None, _no_pool(host, pool))
            asked = await self._queries.restart_pool(host=host, pool=pool, operator=self.operator).fetch_all(conn)
            action = Action("restart_pool", _pool(host, pool), stored_reason(reason), {"workers": asked})
            operation_id = await self._journal.write_down(conn, action, affected=len(asked))
            await self._queries.notify_processes("workers").execute(conn)
            await self._queries.notify_processes("pools").execute(conn)
        return ActionResult(operation_id, affected=len(asked))

    async def drain_worker(
        self, conn: AsyncConnection[Any], worker_id: str, *, reason: str | None = None
    ) -> ActionResult:
        """Lets a worker finish what it runs, and end."""
        return await self._ask_worker(conn, "drain", worker_id, reason)

    async def stop_worker(
        self, conn: AsyncConnection[Any], worker_id: str, *, reason: str | None = None
    ) -> ActionResult:
        """Makes a worker hand back what it runs, unspent, and end."""
        return await self._ask_worker(conn, "stop", worker_id, reason)

    async def restart_worker(
        self, conn: AsyncConnection[Any], worker_id: str, *, reason: str | None = None
    ) -> ActionResult:
        """Drains a worker and starts another in its place."""
        return await self._ask_worker(conn, "restart", worker_id, reason)

    async def _scale(
        self,
        conn: AsyncConnection[Any],
        action: Action,
        host: str,
        pool: str,
        number: int,
        *,
        is_change: bool = False,
    ) -> ActionResult:
        async with conn.transaction():
            now = await self._queries.lock_pool(host=host, pool=pool).fetch_one(conn)
            if now is None:
                return ActionResult(None, _no_pool(host, pool))
            wanted = now.wanted + number if is_change else number
            if not now.minimum <= wanted <= now.maximum:
                return ActionResult(
                    None, f"pool {pool} on {host} has between {now.minimum} and {now.maximum} workers, not {wanted}"
                )
            await self._queries.set_pool_wanted(host=host, pool=pool, wanted=wanted, operator=self.operator).execute(
                conn
            )
            action.parameters.update(before=now.wanted, wanted=wanted)
            undo = {"host": host, "pool": pool, "wanted": now.wanted}
            operation_id = await self._journal.write_down(conn, action, affected=1, undo=undo)
            await self._queries.notify_processes("pools").execute(conn)
        return ActionResult(operation_id, affected=1)

    async def _ask_worker(
        self, conn: AsyncConnection[Any], wanted: str, worker_id: str, reason: str | None
    ) -> ActionResult:
        async with conn.transaction():
            worker = await self._queries.lock_worker(worker_id=worker_id).fetch_one(conn)
            if worker is None:
                return ActionResult(None, f"there is no worker {worker_id}")
            if worker.stopped_at is not None:
                return ActionResult(None, f"worker {worker_id} has ended already ({worker.state})")
            await self._queries.set_worker_wanted(worker_id=worker_id, wanted=wanted).execute(conn)
            action = Action(f"{wanted}_worker", f"worker {worker_id}", stored_reason(reason))
            operation_id = await self._journal.write_down(conn, action, affected=1)
            await self._queries.notify_processes("workers").execute(conn)
        return ActionResult(operation_id, affected=1)


def _pool(host: str, pool: str) -> str:
    return f"pool {pool} on {host}"


def _no_pool(host: str, pool: str) -> str:
    return f"there is no pool {pool} on {host}"
