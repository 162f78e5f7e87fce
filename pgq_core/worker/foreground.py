"""`pgq-core worker`: a keeper with one runner in the foreground, until somebody stops it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

from pgq_core.database import connect_sync
from pgq_core.errors import DatabaseUnavailable, InvalidSettings, PgqError, SchemaError
from pgq_core.logs import LineWriter, configure_logs, get_logger
from pgq_core.migrate import check_schema
from pgq_core.service import Pauses, Service, loops_of, run_and_leave, unless, wait_for_any
from pgq_core.worker.backoff import RestartBackoff
from pgq_core.worker.exits import ExitKind, RunnerExit
from pgq_core.worker.handle import RunnerHandle
from pgq_core.worker.keeper import Keeper
from pgq_core.worker.options import WorkerOptions
from pgq_core.worker.reloading import SourceWatch
from pgq_core.worker.spec import served_queues

LEAVING: Final = 0.1
"""Seconds that services beside the keeper still have when the last runner is gone; they were told to stop before."""
READY_CAP: Final = 3.0
"""Longest pause, in seconds, after a runner that had been ready: a job killed it, and such jobs end by themselves."""
_STDOUT: Final = 1


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    DATABASE = 3


def run_worker(options: WorkerOptions, services: Sequence[Service] = ()) -> int:
    """Runs one worker, and `services` beside it in the keeper's process, until it is stopped. Answers the exit code.

    A worker that cannot even start once says why on stderr and ends; one that has run before is started again.
    """
    settings = options.settings
    log = configure_logs(format=settings.log_format, level=settings.log_level)
    try:
        served_queues(settings.queues)
        if not _is_fit(options):
            return ExitCode.DATABASE
        return run_and_leave(ForegroundWorker(options, services, log).run())
    except InvalidSettings as error:
        print(error, file=sys.stderr)  # noqa: T201 - words for the person at the terminal
        return ExitCode.FAILED
    except SchemaError as error:  # such as a role that may read everything and may not register a worker
        print(error, file=sys.stderr)  # noqa: T201
        return ExitCode.DATABASE
    finally:
        log.close()


def _is_fit(options: WorkerOptions) -> bool:
    """Whether this program can work on the schema; a database that is only away now is waited for later."""
    settings = options.settings
    try:
        with connect_sync(settings.dsn or "", application_name="pgq worker") as conn:
            check_schema(conn, settings.db_schema)
    except DatabaseUnavailable:
        return True
    except PgqError as error:
        print(error, file=sys.stderr)  # noqa: T201 - words for the person at the terminal
        return False
    return True


class ForegroundWorker:
    """Keeps one runner running: the smallest owner a keeper can have."""

    def __init__(self, options: WorkerOptions, services: Sequence[Service], log: LineWriter) -> None:
        self._options = options
        self._services = services
        self._outputs = {"out": LineWriter(_STDOUT), "err": log}
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._keeper = Keeper(options.settings, on_output=self._pass_on, loops=lambda: loops_of(services))
        self._backoff = RestartBackoff()
        self._logger = get_logger("pgq.keeper")
        self._handle: RunnerHandle | None = None
        self._has_run = False
        self._source = SourceWatch() if options.reload else None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._hear_signal)
        await self._keeper.open()
        stop_services = asyncio.Event()
        services = [asyncio.create_task(service.run(stop_services)) for service in self._services]
        try:
            return await self._keep_running()
        finally:
            stop_services.set()
            await self._keeper.close(at_once=self._hurry.is_set())
            if services:
                await asyncio.wait(services, timeout=LEAVING)
            self._outputs["out"].close()

    async def _keep_running(self) -> int:
        while not self._stop.is_set():
            handle = await self._started()
            if handle is None:
                continue
            self._handle = handle
            ended = await self._end_of(handle)
            self._has_run = self._has_run or bool(handle.job_types)
            if self._is_final(ended):
                return ExitCode.FAILED if ended.kind is ExitKind.REFUSED else ExitCode.DONE
            pause = self._backoff.delay_after(ended)
            await wait_for_any(self._stop, timeout=min(pause, READY_CAP) if handle.job_types else pause)
        return ExitCode.DONE

    async def _started(self) -> RunnerHandle | None:
        pauses = Pauses()
        while not self._stop.is_set():
            try:
                return await unless(self._stop, self._keeper.start_runner(self._options.spec))
            except DatabaseUnavailable:
                await wait_for_any(self._stop, timeout=pauses.next())
        return None

    async def _end_of(self, handle: RunnerHandle) -> RunnerExit:
        """Waits for the end, and brings it about when somebody asks for it."""
        end = asyncio.ensure_future(handle.wait())
        watches: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._stop.wait())]
        if self._source is not None:
            watches.append(asyncio.ensure_future(self._source.wait_for_change()))
        await asyncio.wait([end, *watches], return_when=asyncio.FIRST_COMPLETED)
        if self._stop.is_set():
            self._keeper.drain(handle, "asked to stop")
        elif not end.done():
            self._keeper.drain(handle, "restart: a source file has changed")
        for watch in watches:
            watch.cancel()
        return await end

    def _is_final(self, ended: RunnerExit) -> bool:
        match ended.kind:
            case ExitKind.FINISHED:
                return True
            case ExitKind.STOPPED:
                return self._stop.is_set() or not ended.reason.startswith("restart")
            case ExitKind.REFUSED:
                return not self._has_run and self._source is None
            case _:
                return False

    def _hear_signal(self) -> None:
        if not self._stop.is_set():
            self._logger.info("worker_stopping")
            self._stop.set()
            return
        self._hurry.set()
        if self._handle is not None:
            self._keeper.stop(self._handle, "asked to stop at once")

    def _pass_on(self, _: RunnerHandle, stream: str, lines: list[str]) -> None:
        self._outputs[stream].write_lines([line.encode("utf-8", "replace") for line in lines])
