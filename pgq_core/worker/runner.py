"""The runner: a process that imports the application and works off its queues."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import math
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import psycopg

from pgq_core.database import first_line, is_transient
from pgq_core.domain.text import describe
from pgq_core.errors import PgqError
from pgq_core.handlers import Registry, Resources, load_app
from pgq_core.logs import configure_logs, get_logger
from pgq_core.queries import Queries
from pgq_core.service import Pauses, wait_for_any
from pgq_core.worker.attempt import Verdict
from pgq_core.worker.corridor import UNWINDING, Corridor
from pgq_core.worker.forks import guard_forks
from pgq_core.worker.marks import Marks
from pgq_core.worker.orphan import OrphanBeats
from pgq_core.worker.protocol import ORDERS_VARIABLE, Report, ReportKind, RunnerExitCode, RunnerOrders, read_orders
from pgq_core.worker.streams import abandon_streams, guard_streams
from pgq_core.worker.watchdog import Watchdog

OPEN_LIMIT = 30.0
"""Seconds after which a database that says nothing is asked anew."""
LAST_CLAIM = 0.5
"""Seconds that a claim under way at the stop has to answer."""
LAST_WRITE = 0.4
"""Seconds beyond the grace for outcomes that are not yet written."""

COLLECT_AFTER: Final = 10_000
"""New objects, less freed ones, after which the garbage collector looks at the youngest."""


class Runner:
    """One run of the corridor, from the first claim to the exit code."""

    def __init__(self, orders: RunnerOrders, registry: Registry, control: int) -> None:
        self._orders = orders
        self._registry = registry
        self._control = control
        self._settings = orders.settings
        self._marks = Marks(orders.marks_descriptor, orders.concurrency)
        self._resources: Resources = {}
        self._leave = asyncio.Event()
        self._hurry = asyncio.Event()
        self._leave_by = math.inf
        self._code = RunnerExitCode.DONE
        self._is_fenced = False
        self.is_ready = False
        self._orphan: asyncio.Task[None] | None = None
        self._orphan_stop = asyncio.Event()
        self._end_of_the_spoiled: asyncio.Task[None] | None = None
        self._logger = get_logger("pgq.worker", worker_id=orders.worker_id)
        self._corridor = Corridor(
            orders, registry, self._marks, self._resources, on_stuck=self._give_up, on_spoiled=self._break_off
        )
        self._watchdog = Watchdog(self._marks, stale_limit=self._settings.stale_limit, on_fenced=self._hear_of_silence)

    async def run(self) -> RunnerExitCode:
        self._loop = loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._hear_signal, number)
        loop.add_reader(self._control, self._notice_keepers_end)
        await self._registry.start(self._resources)
        if await self._open():
            self._watchdog.start()
            self.is_ready = True
            self._report(Report(ReportKind.READY, job_types=self._registry.types))
            self._logger.info("worker_ready", queues=list(self._orders.queues), job_types=list(self._registry.types))
            await self._work()
            await self._drain()
        await self._end()
        return self._code

    async def _open(self) -> bool:
        """However long the database is away. False when we were told to leave first."""
        pauses = Pauses()
        while not self._leave.is_set():
            try:
                async with asyncio.timeout(OPEN_LIMIT):
                    await self._corridor.open()
            except (psycopg.Error, PgqError, OSError) as error:
                if not is_transient(error):
                    raise
                self._logger.warning("worker_waits_for_database", error=first_line(error))
                await wait_for_any(self._leave, timeout=pauses.next())
            else:
                return True
        return False

    async def _work(self) -> None:
        """Until somebody wants us to leave, a burst is over, or a station breaks down."""
        stations = self._corridor.start()
        leave = asyncio.ensure_future(self._leave.wait())
        done, _ = await asyncio.wait([leave, *stations], return_when=asyncio.FIRST_COMPLETED)
        leave.cancel()
        for station in stations:
            if station in done and (error := station.exception()) is not None:
                self._logger.error("worker_broke_down", station=station.get_name(), exc_info=error)
                self._code = RunnerExitCode.FAILED
                self._start_leaving(f"its {station.get_name()} broke down")
        if not self._leave.is_set() and self._code is RunnerExitCode.DONE:
            self._report(Report(ReportKind.FINISHED))

    async def _drain(self) -> None:
        corridor = self._corridor
        await corridor.stop_claiming(min(LAST_CLAIM, self._settings.grace))
        if not await corridor.finish_running(self._time_left(), self._hurry) and not self._is_fenced:
            await corridor.interrupt(Verdict.INTERRUPT)
            if self._orphan is not None:  # else our keeper gives them back, once they cannot do anything any more
                corridor.executor.give_up_threads()
        if self._is_fenced:
            await self._drop_everything()
        else:
            left = 0.0 if self._hurry.is_set() else min(self._time_left(), self._settings.grace)
            await corridor.write_out(LAST_WRITE + left)

    def _time_left(self) -> float:
        """Of the grace, in seconds."""
        return max(self._leave_by - self._loop.time(), 0.0)

    async def _drop_everything(self) -> None:
        """Others may have our jobs: nothing of ours may go on. Results of jobs that are through are still offered."""
        await self._corridor.interrupt(Verdict.DROP)
        if not self._corridor.executor.has_busy_threads():
            await self._corridor.write_out(self._settings.grace)

    async def _end(self) -> None:
        if self._orphan is not None:
            self._orphan_stop.set()
            await asyncio.wait([self._orphan], timeout=UNWINDING)
        try:
            async with asyncio.timeout(UNWINDING + (0.0 if self._hurry.is_set() else self._time_left())):
                await self._registry.stop(self._resources)
        except TimeoutError:
            self._logger.warning("shutdown_hooks_cut_short")
        except Exception:
            self._logger.exception("shutdown_hooks_failed")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNWINDING):
                await self._corridor.close()

    # What happens to us

    def _hear_signal(self, number: int) -> None:
        if self._leave.is_set():
            self._hurry.set()
            return
        self._start_leaving(f"asked to stop by {signal.Signals(number).name}")

    def _give_up(self, reason: str) -> None:
        """A job cannot be got rid of but by ending its process."""
        if not self._leave.is_set():
            self._code = RunnerExitCode.STUCK
            self._report(Report(ReportKind.LEAVING, reason))
            self._start_leaving(reason)

    def _break_off(self, reason: str) -> None:
        """Something that runs here has made the process useless: it ends like one that died, with the same to blame."""
        if not self._leave.is_set() and self._end_of_the_spoiled is None:
            self._report(Report(ReportKind.LEAVING, reason))
            self._logger.error("worker_spoiled", reason=reason)
            self._end_of_the_spoiled = asyncio.create_task(self._end_spoiled(), name="end of the spoiled")

    async def _end_spoiled(self) -> None:
        self._corridor.producer.stop()
        await self._corridor.write_out(LAST_WRITE)
        os._exit(RunnerExitCode.SPOILED)

    def _hear_of_silence(self, seconds: float) -> None:
        """In the watchdog's thread. The keeper is told from here: a job may hold up the loop to the hard end."""
        reason = f"no beat got through for {seconds:.1f} s"
        self._report(Report(ReportKind.LEAVING, f"fenced: {reason}"))
        with contextlib.suppress(RuntimeError):  # the loop is closed: we are leaving already
            self._loop.call_soon_threadsafe(self._fence, reason)

    def _fence(self, reason: str) -> None:
        self._is_fenced, self._code = True, RunnerExitCode.FENCED
        self._corridor.executor.interrupt(Verdict.DROP)
        self._report(Report(ReportKind.LEAVING, f"fenced: {reason}"))
        self._start_leaving(f"fenced: {reason}")
        self._hurry.set()

    def _notice_keepers_end(self) -> None:
        """The control pipe is readable: only its end is ever to be read."""
        self._loop.remove_reader(self._control)
        abandon_streams()
        if self._orphan is None:
            beats = OrphanBeats(
                self._corridor.writer,
                Queries(self._settings.db_schema),
                self._marks,
                worker_id=self._orders.worker_id,
                interval=self._settings.heartbeat,
                on_lost=lambda: self._fence("it was taken for lost and its jobs were given to others"),
            )
            self._orphan = asyncio.create_task(beats.run(self._orphan_stop), name="orphan's beats")
        self._start_leaving("its keeper is gone")

    def _start_leaving(self, reason: str) -> None:
        if not self._leave.is_set():
            self._leave_by = self._loop.time() + self._settings.grace
            self._leave.set()
            self._logger.info("worker_draining", reason=reason)
            self._report(Report(ReportKind.DRAINING, reason))

    def _report(self, report: Report) -> None:
        send_report(self._orders, report)


def send_report(orders: RunnerOrders, report: Report) -> None:
    # A keeper that is gone needs no report.
    with contextlib.suppress(OSError):
        os.write(orders.report_descriptor, report.encode())


def load_apps(apps: Sequence[str]) -> Registry:
    """One registry with the handlers of all applications. Raises AppNotFound, DuplicateHandler, what imports raise."""
    registries: list[Registry] = []
    for app in apps:
        registry = load_app(app)
        if registry not in registries:
            registries.append(registry)
    if len(registries) == 1:
        return registries[0]
    together = Registry()
    for registry in registries:
        together.include(registry)
    return together


def main() -> None:
    control = int(os.environ.pop(ORDERS_VARIABLE))
    faulthandler.enable()
    log_descriptor = guard_streams()
    guard_forks()
    orders = read_orders(control)
    for descriptor in (control, orders.report_descriptor, orders.marks_descriptor):
        os.set_inheritable(descriptor, False)
    writer = configure_logs(
        format=orders.settings.log_format, level=orders.settings.log_level, descriptor=log_descriptor
    )
    code = _run(orders, control)
    sys.stdout.flush()
    sys.stderr.flush()
    writer.close()
    # Threads of jobs that do not end must not keep the process.
    os._exit(code)


def _run(orders: RunnerOrders, control: int) -> int:
    runner: Runner | None = None

    async def run_async() -> int:
        nonlocal runner
        runner = Runner(orders, registry, control)
        return await runner.run()

    try:
        registry = load_apps(orders.apps)
        _spare_the_collector()
        return asyncio.new_event_loop().run_until_complete(run_async())
    except PgqError as error:
        return _refuse(orders, str(error))
    except BaseException as error:  # noqa: BLE001 - an application may raise anything, at import and later
        traceback.print_exc()
        if runner is not None and runner.is_ready:
            # A job tore the loop down (`sys.exit` in a task of its own, all tasks cancelled): a death like any other.
            logger = get_logger("pgq.worker", worker_id=orders.worker_id)
            logger.error("worker_broke_down", error=describe(error, limit=2000))  # noqa: TRY400 - printed above
            return RunnerExitCode.FAILED
        return _refuse(orders, f"{', '.join(orders.apps)}: {describe(error, limit=2000)}")


def _spare_the_collector() -> None:
    """What is imported stays: the garbage collector need not walk over it for every few hundred rows of a claim.

    Measured: a twelfth of what a job without work costs. Garbage in cycles waits a little longer.
    """
    gc.collect()
    gc.freeze()
    first, *others = gc.get_threshold()
    if 0 < first < COLLECT_AFTER:  # an application may have switched it off, or have chosen more
        gc.set_threshold(COLLECT_AFTER, *others)


def _refuse(orders: RunnerOrders, reason: str) -> int:
    get_logger("pgq.worker", worker_id=orders.worker_id).error("worker_cannot_start", reason=reason)
    send_report(orders, Report(ReportKind.REFUSED, reason))
    return RunnerExitCode.REFUSED


if __name__ == "__main__":
    main()
