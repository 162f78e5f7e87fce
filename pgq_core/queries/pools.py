"""Statements of the supervisor: who is in charge of a host, what its pools want, how they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class SupervisorRow:
    """Who is in charge of a host's pools."""

    host: str
    supervisor_id: str
    pid: int
    started_at: datetime
    heartbeat_at: datetime
    stopping: bool
    is_stale: bool


@dataclass(frozen=True, slots=True)
class WantedPoolRow:
    name: str
    wanted: int
    state: str


@dataclass(frozen=True, slots=True)
class PoolWorkerRow:
    """A live worker of a pool. `wanted` other than 'run': an operator asked this one to leave."""

    id: str
    pool: str
    supervisor_id: str | None
    state: str
    wanted: str
    running: int


class PoolQueries(QueryGroup):
    def take_host_lease(
        self,
        *,
        host: str,
        supervisor_id: str,
        pid: int,
        pools: Sequence[str],
        version: str,
        stale_limit: timedelta,
        dead_id: str | None,
    ) -> Statement[str]:
        """One row when the lease is ours now. `dead_id`: a former holder that is known to be dead."""
        return self._statement(
            "take_host_lease",
            str,
            host=host,
            supervisor_id=supervisor_id,
            pid=pid,
            pools=list(pools),
            version=version,
            stale_limit=stale_limit,
            dead_id=dead_id,
        )

    def beat_for_host(
        self, *, host: str, supervisor_id: str, stopping: bool, loops: str | None = None
    ) -> Statement[None]:
        return self._statement("beat_for_host", host=host, supervisor_id=supervisor_id, stopping=stopping, loops=loops)

    def release_host_lease(self, *, host: str, supervisor_id: str) -> Statement[None]:
        return self._statement("release_host_lease", host=host, supervisor_id=supervisor_id)

    def find_supervisor(self, *, host: str, stale_limit: timedelta) -> Statement[SupervisorRow]:
        return self._statement("find_supervisor", SupervisorRow, host=host, stale_limit=stale_limit)

    def announce_pool(
        self,
        *,
        host: str,
        name: str,
        queues: Sequence[str],
        concurrency: int,
        wanted: int,
        minimum: int,
        maximum: int,
        supervisor_id: str,
    ) -> Statement[None]:
        return self._statement(
            "announce_pool",
            host=host,
            name=name,
            queues=list(queues),
            concurrency=concurrency,
            wanted=wanted,
            minimum=minimum,
            maximum=maximum,
            supervisor_id=supervisor_id,
        )

    def refuse_pools(self, *, host: str, defined: Sequence[str], detail: str) -> Statement[str]:
        """Rows: the names that were refused just now."""
        return self._statement("refuse_pools", str, host=host, defined=list(defined), detail=detail)

    def list_wanted_pools(self, *, host: str) -> Statement[WantedPoolRow]:
        return self._statement("list_wanted_pools", WantedPoolRow, host=host)

    def lower_pool(self, *, host: str, name: str, by: int, supervisor_id: str) -> Statement[None]:
        return self._statement("lower_pool", host=host, name=name, by=by, supervisor_id=supervisor_id)

    def list_pool_workers(self, *, host: str, stale_limit: timedelta) -> Statement[PoolWorkerRow]:
        return self._statement("list_pool_workers", PoolWorkerRow, host=host, stale_limit=stale_limit)

    def report_pool(
        self, *, host: str, name: str, state: str, detail: str | None, retry_in: float | None, restarts: int
    ) -> Statement[None]:
        return self._statement(
            "report_pool", host=host, name=name, state=state, detail=detail, retry_in=retry_in, restarts=restarts
        )

    def save_outputs(self, outputs: Mapping[str, str]) -> Statement[str]:
        """`outputs`: the last lines by worker id. Answers the ids of those that were saved."""
        return self._statement("save_outputs", str, ids=list(outputs), outputs=list(outputs.values()))
