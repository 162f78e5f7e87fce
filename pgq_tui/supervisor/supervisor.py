"""One process that keeps the pools of one host at their wanted numbers, from taking charge to leaving."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg

from pgq_core.database import is_transient
from pgq_core.errors import PgqError
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.maintenance import Maintenance
from pgq_core.migrate import check_schema_async
from pgq_core.queries import Queries
from pgq_core.service import Pauses, loops_of, unless, wait_for_any
from pgq_core.worker import Keeper, KeeperEvent, KeeperEventKind
from pgq_tui.supervisor.charge import Charge
from pgq_tui.supervisor.host_lock import HostLock
from pgq_tui.supervisor.options import SupervisorOptions
from pgq_tui.supervisor.reconciler import CALL_LIMIT, Reconciler
from pgq_tui.supervisor.worker_logs import WorkerLogs

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LAST_RESORT = 0.1
LAST_WORDS = 1.0
"""Seconds for what is nice to write down at the end; a database that is away must not hold up the exit."""

logger = get_logger("pgq.supervisor")


class Supervisor:
    """`run` does everything; `stop` may be called from the event loop at any time, a second time for "at once"."""

    def __init__(self, options: SupervisorOptions, *, on_charge: Callable[[str], None] | None = None) -> None:
        self.id = f"{options.host}-supervisor-{secrets.token_hex(4)}"
        self._options = options
        self._on_charge = on_charge
        settings = options.settings
        lock = HostLock(options.state_dir, host=options.host, dsn=settings.dsn or "", schema=settings.db_schema)
        self._charge = Charge(
            lock,
            Queries(settings.db_schema),
            host=options.host,
            pools=[pool.name for pool in options.pools],
            supervisor_id=self.id,
            stale_limit=timedelta(seconds=settings.stale_limit),
        )
        self._logs = WorkerLogs(options.state_dir / "workers")
        self._keeper = Keeper(settings, host=options.host, on_event=self._on_event, on_output=self._logs.on_output)
        self._reconciler = Reconciler(
            settings,
            self._keeper,
            options.pools,
            host=options.host,
            supervisor_id=self.id,
            charge=self._charge,
            on_charge_lost=self._lose_charge,
            loops=lambda: loops_of((self._keeper, self._maintenance)),
        )
        self._maintenance = Maintenance(settings)
        self._stop_asked = asyncio.Event()
        self._hurry_asked = asyncio.Event()
        self._is_database_away = False

    def stop(self) -> None:
        """Drain all workers and leave; asked again, their jobs are handed back at once."""
        if self._stop_asked.is_set():
            self._hurry_asked.set()
        self._stop_asked.set()

    async def run(self) -> int:
        """0 when asked to stop, 1 when another supervisor took over. Raises SupervisorRunning, SchemaError."""
        self._charge.lock_host()
        try:
            with self._signals():
                if not await self._take_charge():
                    return 0
                return await self._supervise()
        finally:
            self._charge.unlock_host()

    async def _take_charge(self) -> bool:
        """Waits for the database as long as it takes. False when asked to stop meanwhile."""
        pauses, trouble = Pauses(), RepeatedTrouble(logger)
        names = [pool.name for pool in self._options.pools]
        while not self._stop_asked.is_set():
            try:
                is_taken = await unless(self._stop_asked, self._try_to_take_charge(names))
            except (PgqError, psycopg.Error, TimeoutError) as error:
                if not is_transient(error):
                    raise
                trouble.say("supervisor_waits_for_database", error)
                await wait_for_any(self._stop_asked, timeout=pauses.next())
            else:
                if not is_taken:
                    break
                logger.info("in_charge", supervisor_id=self.id, host=self._options.host, pools=names)
                if self._on_charge is not None:
                    self._on_charge(self.id)
                return True
        return False

    async def _try_to_take_charge(self, names: list[str]) -> bool:
        async with asyncio.timeout(CALL_LIMIT):
            conn = await self._reconciler.connection()
            await check_schema_async(conn, self._options.settings.db_schema)
            await self._charge.take(conn)
            await self._reconciler.announce(conn, set(names))
        return True

    async def _supervise(self) -> int:
        await self._keeper.open()
        reconciling = asyncio.create_task(self._reconciler.run(self._stop_asked))
        maintaining = asyncio.create_task(self._maintain())
        try:
            await self._stop_asked.wait()
            await self._drain(reconciling)
        finally:
            await _end(maintaining, within=0.1)
            self._logs.close()
        if self._reconciler.has_lost_charge:
            return 1
        logger.info("supervisor_left", supervisor_id=self.id)
        return 0

    async def _maintain(self) -> None:
        if self._options.with_maintenance:
            await self._maintenance.run(self._stop_asked)

    async def _drain(self, reconciling: asyncio.Task[None]) -> None:
        """With what follows bounded by the grace time and two seconds, whatever the database does."""
        deadline = time.monotonic() + self._options.longest_grace + 1.5
        self._reconciler.is_closing = True
        for handle in self._keeper.handles:
            self._keeper.drain(handle)
        await _end(reconciling, within=LAST_WORDS)
        closing = asyncio.create_task(self._close_keeper())
        beating = asyncio.create_task(self._beat_until_gone())
        hurrying = asyncio.create_task(self._hurry_when_asked())
        await asyncio.wait({closing}, timeout=max(deadline - LAST_RESORT - time.monotonic(), 0.0))
        for handle in self._keeper.handles:
            self._keeper.kill(handle)
        await _cancel(beating, hurrying, closing)
        await self._give_charge_back(within=max(deadline - time.monotonic(), LAST_RESORT))

    async def _close_keeper(self) -> None:
        """What the last workers held is given back before we go; a database that is away is not waited for."""
        for handle in self._keeper.handles:
            await handle.wait()
        if not self._is_database_away:
            await self._keeper.settled()
        await self._keeper.close()

    async def _beat_until_gone(self) -> None:
        """A drain may take longer than the stale limit: nobody is to take the host over in the middle of it."""
        while True:
            with contextlib.suppress(PgqError, psycopg.Error, OSError):
                await self._reconciler.beat(stopping=True)
            await asyncio.sleep(self._options.settings.heartbeat)

    async def _hurry_when_asked(self) -> None:
        await self._hurry_asked.wait()
        logger.info("supervisor_hurries", supervisor_id=self.id)
        for handle in self._keeper.handles:
            self._keeper.stop(handle)

    async def _give_charge_back(self, *, within: float) -> None:
        with contextlib.suppress(TimeoutError, PgqError, psycopg.Error, OSError):
            async with asyncio.timeout(min(within, LAST_WORDS)):
                conn = await self._reconciler.connection()
                await self._charge.release(conn)
                await conn.close()

    def _on_event(self, event: KeeperEvent) -> None:
        if event.kind in (KeeperEventKind.DATABASE_LOST, KeeperEventKind.DATABASE_BACK):
            self._is_database_away = event.kind is KeeperEventKind.DATABASE_LOST
        self._reconciler.on_event(event)
        self._logs.on_event(event)

    def _lose_charge(self) -> None:
        logger.error("charge_lost", supervisor_id=self.id, detail="another supervisor took over; workers are drained")
        self._stop_asked.set()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)


async def _end(task: asyncio.Task[None], *, within: float) -> None:
    """Give a task a moment to end by itself, then end it."""
    await asyncio.wait({task}, timeout=within)
    await _cancel(task)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """A task that waits for a silent connection does not end at once; it is left behind. Errors are logged: nobody else
    waits for these tasks.
    """
    for task in tasks:
        task.cancel()
    done, _ = await asyncio.wait(tasks, timeout=LAST_RESORT)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("supervisor_task_failed", error=repr(error))
