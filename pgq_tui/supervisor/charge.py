"""Being the one supervisor of a host: a locked file on this machine and a lease row in the database."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.health import LoopHealth, encode_loops
from pgq_core.logs import get_logger
from pgq_core.queries import Queries
from pgq_tui.supervisor.errors import SupervisorRunning
from pgq_tui.supervisor.host_lock import Holder, HostLock

logger = get_logger("pgq.supervisor")


class Charge:
    """Take it, renew it with `beat`, give it back with `release`."""

    def __init__(
        self,
        lock: HostLock,
        queries: Queries,
        *,
        host: str,
        pools: list[str],
        supervisor_id: str,
        stale_limit: timedelta,
    ) -> None:
        self._lock = lock
        self._queries = queries
        self._host = host
        self._pools = pools
        self._id = supervisor_id
        self._stale_limit = stale_limit
        self._former: Holder | None = None

    def lock_host(self) -> None:
        """Raises SupervisorRunning when a living process of this machine has it. Needs no database."""
        try:
            self._former = self._lock.take(Holder(self._id, os.getpid()))
        except BlockingIOError as error:
            holder = self._lock.living_holder() or Holder("(just starting)", 0)
            raise SupervisorRunning(self._host, holder.supervisor_id, holder.pid) from error
        except OSError as error:
            # Without the file a killed supervisor is succeeded only after the stale limit; nothing else depends on it.
            logger.warning("host_lock_unavailable", path=str(self._lock.path), error=str(error))

    async def take(self, conn: AsyncConnection[Any]) -> None:
        """Raises SupervisorRunning while another one beats for this host, and is not known to be dead."""
        find = self._queries.find_supervisor(host=self._host, stale_limit=self._stale_limit)
        holder = await find.fetch_one(conn)
        dead_id = holder.supervisor_id if holder and self._is_proven_dead(holder.supervisor_id) else None
        if await self._take(conn, dead_id=dead_id) is None:
            holder = await find.fetch_one(conn) or holder
            name, pid = (holder.supervisor_id, holder.pid) if holder else ("(unknown)", 0)
            raise SupervisorRunning(self._host, name, pid)

    async def beat(self, conn: AsyncConnection[Any], *, stopping: bool, loops: Iterable[LoopHealth] = ()) -> bool:
        """False when another supervisor has taken over. A row that somebody deleted is put there again."""
        beat = self._queries.beat_for_host(
            host=self._host, supervisor_id=self._id, stopping=stopping, loops=encode_loops(loops)
        )
        if await beat.execute(conn) == 1:
            return True
        return await self._take(conn, dead_id=None) is not None

    async def _take(self, conn: AsyncConnection[Any], *, dead_id: str | None) -> str | None:
        return await self._queries.take_host_lease(
            host=self._host,
            supervisor_id=self._id,
            pid=os.getpid(),
            pools=self._pools,
            version=version("pgq-tui"),
            stale_limit=self._stale_limit,
            dead_id=dead_id,
        ).fetch_one(conn)

    async def release(self, conn: AsyncConnection[Any]) -> None:
        await self._queries.release_host_lease(host=self._host, supervisor_id=self._id).execute(conn)

    def unlock_host(self) -> None:
        self._lock.release()

    def _is_proven_dead(self, supervisor_id: str) -> bool:
        """Who held the lock that is ours now cannot be alive."""
        return self._former is not None and self._former.supervisor_id == supervisor_id
