"""All duties together: a service beside a worker or a supervisor, or a process of its own (`pgq-core maintain`)."""

from __future__ import annotations

import asyncio
import signal
import sys
from random import Random
from typing import Final

from pgq_core.database import connect_sync
from pgq_core.domain.health import LoopHealth
from pgq_core.domain.text import describe
from pgq_core.errors import DatabaseUnavailable, PgqError
from pgq_core.logs import configure_logs, get_logger
from pgq_core.maintenance.doomed import SpentBudgets, UnknownTypes
from pgq_core.maintenance.duty import Duty
from pgq_core.maintenance.key_window import KeyWindow
from pgq_core.maintenance.leadership import Leadership
from pgq_core.maintenance.partitions import ExpiredPartitions, PartitionsAhead
from pgq_core.maintenance.promoter import Promoter
from pgq_core.maintenance.reaper import Reaper
from pgq_core.maintenance.retention import Retention
from pgq_core.maintenance.stats import StatsRollup
from pgq_core.maintenance.vacuum import JobsVacuum
from pgq_core.migrate import check_schema
from pgq_core.plain_settings import AnySettings
from pgq_core.queries import Queries
from pgq_core.service import ServiceHealth, loops_of, run_and_leave

SLOW: Final = 60.0
HOURLY: Final = 3600.0
BRISK: Final = 1.0
_LEAVING: Final = 1.0
_DONE: Final = 0
_DATABASE: Final = 3


class Maintenance:
    """Runs in any number of processes; one of them leads, the others stand by."""

    def __init__(self, settings: AnySettings) -> None:
        queries = Queries(settings.db_schema)
        random = Random()  # noqa: S311 - draws retry delays
        lead = self._leadership = Leadership(settings, loops=lambda: self.loops())  # noqa: PLW0108 - the duties come last
        self.reaper = Reaper(
            lead,
            queries,
            interval=settings.reaper_interval,
            stale_limit=settings.stale_limit,
            random=random,
        )
        self.promoter = Promoter(lead, queries, interval=settings.poll)
        self.spent_budgets = SpentBudgets(lead, queries, interval=settings.reaper_interval)
        self.unknown_types = UnknownTypes(lead, queries, interval=SLOW, after=settings.unknown_type_after)
        self.partitions = PartitionsAhead(lead, queries, interval=SLOW)
        self.expired_partitions = ExpiredPartitions(lead, queries, interval=HOURLY, kept=settings.runs_kept)
        self.retention = Retention(lead, queries, interval=SLOW, dead_letters_kept=settings.resolved_dead_letters_kept)
        self.stats_rollup = StatsRollup(lead, queries, interval=SLOW)
        self.key_window = KeyWindow(lead, queries, interval=SLOW, seconds=settings.key_window)
        self.vacuum = JobsVacuum(lead, queries, interval=BRISK, schema=settings.db_schema)
        self.duties: tuple[Duty, ...] = (
            self.key_window,
            self.partitions,
            self.reaper,
            self.promoter,
            self.spent_budgets,
            self.unknown_types,
            self.stats_rollup,
            self.retention,
            self.expired_partitions,
            self.vacuum,
        )

    @property
    def is_leader(self) -> bool:
        return self._leadership.is_leader

    async def run(self, stop: asyncio.Event) -> None:
        """All duties until `stop`; then the next process may lead at once."""
        await asyncio.gather(*(duty.run(stop) for duty in self.duties))
        await self.close()

    async def close(self) -> None:
        """Gives the lease up; bounded, also without a database."""
        try:
            async with asyncio.timeout(_LEAVING):
                await self._leadership.step_down()
        except Exception as error:  # noqa: BLE001 - the lease ends by itself
            get_logger("pgq.maintenance").info("lease_not_given_back", error=describe(error, limit=500))

    def loops(self) -> list[LoopHealth]:
        return loops_of(self.duties)

    def health(self) -> dict[str, ServiceHealth]:
        return {duty.name: duty.health() for duty in self.duties}


def run_maintenance(settings: AnySettings) -> int:
    """`pgq-core maintain`: the duties as a process of their own, until it is stopped. Answers the exit code."""
    log = configure_logs(format=settings.log_format, level=settings.log_level)
    try:
        with connect_sync(settings.dsn or "", application_name="pgq maintenance") as conn:
            check_schema(conn, settings.db_schema)
    except DatabaseUnavailable as error:
        get_logger("pgq.maintenance").warning("maintenance_waits_for_database", error=describe(error, limit=500))
    except PgqError as error:
        print(error, file=sys.stderr)  # noqa: T201 - words for the person at the terminal
        return _DATABASE
    try:
        run_and_leave(_run_until_signal(settings))
    finally:
        log.close()
    return _DONE


async def _run_until_signal(settings: AnySettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    running = asyncio.ensure_future(Maintenance(settings).run(stop))
    await stop.wait()
    await asyncio.wait([running], timeout=2 * _LEAVING)
