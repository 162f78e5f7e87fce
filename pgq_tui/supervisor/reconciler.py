"""The loop that makes what is there equal to what is wanted, and writes down how it goes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import LOCK_LIMIT, connect
from pgq_core.domain.health import LoopHealth, turn_limit
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries import Queries
from pgq_core.queries.pools import WantedPoolRow
from pgq_core.service import PeriodicService
from pgq_core.settings import Settings
from pgq_core.worker import Keeper, KeeperEvent, KeeperEventKind, RunnerHandle, RunnerSpec, RunnerState
from pgq_tui.supervisor.charge import Charge
from pgq_tui.supervisor.definitions import PoolDefinition
from pgq_tui.supervisor.pool import Plan, Pool, PoolHealth

POLL = 1.0
"""Seconds between two looks at the wanted numbers; a notification makes the next one come at once."""
CALL_LIMIT = 10.0
"""Seconds after which answers are no longer waited for: the other end may be silent without being gone."""

logger = get_logger("pgq.supervisor")


class Reconciler(PeriodicService):
    """Feed it the keeper's events and output; `has_lost_charge` once another supervisor has taken the host over."""

    name = "reconciler"

    def __init__(
        self,
        settings: Settings,
        keeper: Keeper,
        definitions: tuple[PoolDefinition, ...],
        *,
        host: str,
        supervisor_id: str,
        charge: Charge,
        on_charge_lost: Callable[[], None],
        loops: Callable[[], Iterable[LoopHealth]] = tuple,
    ) -> None:
        """`loops`: others of this process, told of with each beat."""
        super().__init__(interval=POLL, limit=turn_limit(POLL, least=settings.stale_limit))
        self._loops_beside = loops
        self._keeper = keeper
        self.has_lost_charge = False
        self.is_closing = False
        self._settings = settings
        self._definitions = {definition.name: definition for definition in definitions}
        self._pools = {definition.name: Pool() for definition in definitions}
        self._host = host
        self._id = supervisor_id
        self._charge = charge
        self._on_charge_lost = on_charge_lost
        self._queries = Queries(settings.db_schema)
        self._stale_limit = timedelta(seconds=settings.stale_limit)
        self._conn: AsyncConnection[Any] | None = None
        self._beat_at = float("-inf")
        self._reported = {definition.name: PoolHealth() for definition in definitions}
        self._sent_away: Counter[str] = Counter()
        self._saved_output: dict[str, tuple[str, ...]] = {}
        self._locks: defaultdict[str, RepeatedTrouble] = defaultdict(lambda: RepeatedTrouble(logger))

    async def connection(self) -> AsyncConnection[Any]:
        if self._conn is None or self._conn.closed:
            self._conn = await connect(
                self._settings.dsn or "",
                application_name=f"pgq supervisor {self._host}",
                statement_timeout=10.0,
                lock_limit=LOCK_LIMIT,
            )
        return self._conn

    async def announce(self, conn: AsyncConnection[Any], names: set[str]) -> None:
        """Write down what this host defines; wanted numbers that operators have set are kept."""
        for name in sorted(names):
            pool = self._definitions[name]
            await self._queries.announce_pool(
                host=self._host,
                name=name,
                queues=pool.queues,
                concurrency=pool.concurrency,
                wanted=pool.wanted,
                minimum=pool.minimum,
                maximum=pool.maximum,
                supervisor_id=self._id,
            ).execute(conn)

    async def run_once(self) -> None:
        async with asyncio.timeout(CALL_LIMIT):
            conn = await self.connection()
            is_beat = await self._renew_charge()
            if self.has_lost_charge or self.is_closing:
                return
            await self._lower_pools(conn)
            wanted = await self._read_wanted(conn)
            foreign = await self._count_foreign(conn)
        plans = {name: self._plan(name, wanted[name] - self._sent_away[name], foreign[name]) for name in self._pools}
        for name, plan in plans.items():
            await self._carry_out(name, plan)
        async with asyncio.timeout(CALL_LIMIT):
            await self._report(conn)
            if is_beat:
                await self._save_outputs(conn)
        next_try = min((plan.look_again_at for plan in plans.values() if plan.look_again_at is not None), default=None)
        self.interval = POLL if next_try is None else min(POLL, max(next_try - time.monotonic(), 0.01))

    async def beat(self, *, stopping: bool) -> None:
        """Renew the lease now, whatever the loop does."""
        if self.has_lost_charge:
            return
        loops = () if stopping else (*self.loops(), *self._loops_beside())
        # Nobody else can take over a row that is locked.
        with self._unless_locked("supervisor"):
            if not await self._charge.beat(await self.connection(), stopping=stopping, loops=loops):
                self.has_lost_charge = True
                self._on_charge_lost()

    async def _renew_charge(self) -> bool:
        """Whether a beat was due."""
        now = time.monotonic()
        if now - self._beat_at < self._settings.heartbeat:
            return False
        await self.beat(stopping=False)
        self._beat_at = now
        return True

    async def _lower_pools(self, conn: AsyncConnection[Any]) -> None:
        for name, count in list(self._sent_away.items()):
            lower = self._queries.lower_pool(host=self._host, name=name, by=count, supervisor_id=self._id)
            with self._unless_locked(f"pool {name}"):
                await lower.execute(conn)
                self._sent_away[name] -= count
                if not self._sent_away[name]:
                    del self._sent_away[name]

    async def _read_wanted(self, conn: AsyncConnection[Any]) -> dict[str, int]:
        rows = await self._queries.list_wanted_pools(host=self._host).fetch_all(conn)
        if any(row.name not in self._definitions and row.state != "refused" for row in rows):
            await self._refuse_unknown(conn)
        for row in rows:
            self._heed_retry(row)
        missing = set(self._definitions) - {row.name for row in rows}
        if missing:
            await self.announce(conn, missing)
        numbers = {row.name: row.wanted for row in rows}
        return {name: pool.clamped(numbers.get(name, pool.wanted)) for name, pool in self._definitions.items()}

    def _heed_retry(self, row: WantedPoolRow) -> None:
        """An operator who restarts a pool in a crash loop sets its state back: no more waiting for the next try."""
        before = self._reported.get(row.name)
        if before is not None and before.state != "ok" and row.state == "ok":
            self._pools[row.name].retry_now()
            self._reported[row.name] = PoolHealth(restarts=before.restarts)

    async def _refuse_unknown(self, conn: AsyncConnection[Any]) -> None:
        detail = f"host {self._host} does not define a pool of this name: add it to the pools file there"
        refuse = self._queries.refuse_pools(host=self._host, defined=list(self._definitions), detail=detail)
        with self._unless_locked("pools of another definition"):
            for name in await refuse.fetch_all(conn):
                logger.warning("pool_refused", pool=name, detail=detail)

    async def _count_foreign(self, conn: AsyncConnection[Any]) -> Counter[str]:
        """Orphans of a killed supervisor count until they are gone: never more workers than wanted for long."""
        statement = self._queries.list_pool_workers(host=self._host, stale_limit=self._stale_limit)
        return Counter(row.pool for row in await statement.fetch_all(conn) if row.supervisor_id != self._id)

    def _plan(self, name: str, wanted: int, foreign: int) -> Plan:
        busy = {handle.worker_id: handle.running for handle in self._keeper.handles if handle.spec.pool == name}
        return self._pools[name].plan(time.monotonic(), wanted=wanted, foreign=foreign, busy=busy)

    async def _carry_out(self, name: str, plan: Plan) -> None:
        handles = {handle.worker_id: handle for handle in self._keeper.handles}
        for worker_id in plan.drain:
            self._pools[name].asked_to_leave(worker_id)
            if worker_id in handles:
                self._keeper.drain(handles[worker_id], "the pool was scaled down")
        for _ in range(plan.start):
            if self.is_closing:
                return
            await self._start(name)

    async def _start(self, name: str) -> None:
        pool = self._pools[name]
        try:
            handle = await self._keeper.start_runner(self._spec(self._definitions[name]))
        except OSError as error:
            pool.failed_to_start(time.monotonic(), str(error))
            return
        pool.started(handle.worker_id, time.monotonic())
        # What happened while the start was awaited was told before this pool knew the worker.
        if handle.state is RunnerState.RUNNING:
            pool.became_ready(handle.worker_id, time.monotonic())
        elif handle.exit is not None:
            self._take_leave(handle)

    def _spec(self, pool: PoolDefinition) -> RunnerSpec:
        return RunnerSpec(
            apps=(pool.app,),
            queues=pool.queues,
            concurrency=pool.concurrency,
            pool=pool.name,
            supervisor_id=self._id,
            cwd=str(pool.cwd) if pool.cwd else None,
            env=pool.env,
            grace=pool.grace,
        )

    def on_event(self, event: KeeperEvent) -> None:
        """What the keeper saw; the next turn acts on it."""
        if event.kind is KeeperEventKind.WAKE and event.detail == "pools":
            self.nudge()
        handle = event.handle
        pool = self._pools.get(handle.spec.pool or "") if handle else None
        if handle is None or pool is None or handle.worker_id not in pool.members:
            return
        match event.kind:
            case KeeperEventKind.READY:
                pool.became_ready(handle.worker_id, time.monotonic())
            case KeeperEventKind.WANTED:
                if event.detail != "restart":
                    self._sent_away[handle.spec.pool or ""] += 1
                pool.asked_to_leave(handle.worker_id)
                self.nudge()
            case KeeperEventKind.EXITED:
                self._take_leave(handle)
                self.nudge()
            case _:
                pass

    def _take_leave(self, handle: RunnerHandle) -> None:
        if handle.exit is not None:
            self._pools[handle.spec.pool or ""].exited(handle.worker_id, time.monotonic(), handle.exit)
            self._saved_output.pop(handle.worker_id, None)

    async def _report(self, conn: AsyncConnection[Any]) -> None:
        now = time.monotonic()
        for name, pool in self._pools.items():
            health, before = pool.health(now), self._reported[name]
            if health == before:
                continue
            report = self._queries.report_pool(
                host=self._host,
                name=name,
                state=health.state,
                detail=health.detail,
                retry_in=None if health.retry_at is None else health.retry_at - now,
                restarts=health.restarts - before.restarts,
            )
            with self._unless_locked(f"pool {name}"):
                await report.execute(conn)
                self._reported[name] = health
                if health.state != before.state:
                    logger.warning("pool_state", pool=name, state=health.state, detail=health.detail)

    async def _save_outputs(self, conn: AsyncConnection[Any]) -> None:
        """The keeper saves the last words of the dead; these are those of the living, when they said something new."""
        recent = {handle.worker_id: handle.recent_output for handle in self._keeper.handles}
        news = {worker_id: lines for worker_id, lines in recent.items() if self._saved_output.get(worker_id) != lines}
        if news:
            save = self._queries.save_outputs({worker_id: "\n".join(lines) for worker_id, lines in news.items()})
            self._saved_output.update({worker_id: news[worker_id] for worker_id in await save.fetch_all(conn)})

    @contextlib.contextmanager
    def _unless_locked(self, row: str) -> Iterator[None]:
        """Around a write that a later turn repeats: where a stranger holds its row, nothing else waits for that."""
        try:
            yield
        except psycopg.errors.LockNotAvailable as error:
            self._locks[row].say("row_is_locked", error, row=row)
        else:
            self._locks[row].over("row_is_free_again")
