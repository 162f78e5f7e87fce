"""The keeper: starts runners, beats for them, sees their ends and gives their jobs back at once.

It never imports the application, so no job can hold up its loop or its GIL.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from random import Random
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.database import LOCK_LIMIT
from pgq_core.domain.health import LoopHealth, turn_limit
from pgq_core.listener import Listener
from pgq_core.logs import get_logger
from pgq_core.plain_settings import AnySettings, plain
from pgq_core.queries import Queries
from pgq_core.queries.upkeep import BeatRow
from pgq_core.service import Pauses
from pgq_core.worker.burial import Burial
from pgq_core.worker.child import Child
from pgq_core.worker.clock import machine_ns
from pgq_core.worker.desk import DatabaseDesk
from pgq_core.worker.events import EventSink, KeeperEvent, KeeperEventKind, OutputSink
from pgq_core.worker.exits import RunnerExit
from pgq_core.worker.handle import Intent, RunnerHandle, RunnerState
from pgq_core.worker.inquest import exit_of
from pgq_core.worker.loops import runner_loops
from pgq_core.worker.marks import Marks
from pgq_core.worker.protocol import Report, ReportKind, RunnerOrders
from pgq_core.worker.spec import RunnerSpec, served_queues

ESCALATE_AFTER: Final = 0.9
"""Seconds after which a leaving runner is killed: beyond its grace, or from the word to leave at once."""
OVERDUE_MARGIN: Final = 1.0
"""Seconds that a runner has, after a job's time limit and the grace, to give itself up before its keeper does."""
_CLOSING: Final = 0.5
_SILENT: Final = 1.0
"""Seconds without an answer after which a database is not waited for at the end."""
_WATCH_INTERVAL: Final = 0.5


class Keeper:
    """Keeper of any number of runners of one schema. All verbs are called on its event loop."""

    def __init__(
        self,
        settings: AnySettings,
        *,
        host: str | None = None,
        on_event: EventSink | None = None,
        on_output: OutputSink | None = None,
        loops: Callable[[], Iterable[LoopHealth]] = tuple,
        random: Random | None = None,
    ) -> None:
        """`loops`: others of this process, told of with each worker's beat."""
        self._settings = plain(settings)
        self._loops_beside = loops
        self._watched_at = time.monotonic()
        self._host = host or socket.gethostname()
        self._on_event = on_event
        self._on_output = on_output
        self._random = random or Random()  # noqa: S311 - draws retry delays
        self._queries = Queries(settings.db_schema)
        self._handles: dict[str, RunnerHandle] = {}
        self._burials: set[asyncio.Task[None]] = set()
        self._watch_task: asyncio.Task[None] | None = None
        self._logger = get_logger("pgq.keeper")
        # A worker that comes back from an outage has to beat before the reaper looks again.
        quickest = min(1.0, settings.stale_limit / 6)
        self._desk = DatabaseDesk(
            Listener(
                settings.dsn or "",
                settings.db_schema,
                application_name="pgq keeper",
                pinned_plans=True,
                lock_limit=LOCK_LIMIT,
            ),
            beat=self._beat,
            interval=settings.heartbeat,
            pauses=Pauses(base=quickest, cap=3 * quickest),
            on_words=self._hear,
            on_change=self._tell_database,
        )

    @property
    def handles(self) -> tuple[RunnerHandle, ...]:
        """The runners whose process lives."""
        return tuple(self._handles.values())

    def loops(self) -> tuple[LoopHealth, ...]:
        """Its own loop beside the beats, which tell of themselves."""
        limit = turn_limit(_WATCH_INTERVAL, least=self._settings.stale_limit)
        return (LoopHealth("watch", time.monotonic() - self._watched_at, limit),)

    async def open(self) -> None:
        """Starts beating. The database need not be there yet."""
        self._watched_at = time.monotonic()
        self._desk.open()
        self._watch_task = asyncio.create_task(self._watch(), name="keeper's watch")

    async def start_runner(self, spec: RunnerSpec) -> RunnerHandle:
        """Registers a worker and starts its process.

        Raises DatabaseUnavailable or another database error when it cannot be registered, OSError when it cannot be
        started, InvalidSettings for queues that make no sense; nothing runs then.
        """
        queues = [queue.name for queue in served_queues(spec.queues)]
        worker_id = f"{self._host}-{spec.pool or 'worker'}-{uuid.uuid4().hex[:8]}"
        sent = machine_ns()
        slot = await self._desk.do(lambda conn: self._register(conn, worker_id, spec, queues), patient=False)
        marks = Marks.create(spec.concurrency)
        marks.last_beat_ns = sent
        handle = RunnerHandle(worker_id, spec, marks, slot=slot)
        try:
            self._spawn(handle)
        except OSError as error:
            marks.close()
            await self._desk.do(Burial.of_unborn(self._queries, worker_id, str(error)), patient=True)
            raise
        self._handles[worker_id] = handle
        self._logger.info("runner_started", worker_id=worker_id, pid=handle.pid, queues=queues)
        self._tell(KeeperEventKind.SPAWNED, handle)
        return handle

    def drain(self, handle: RunnerHandle, reason: str = "drained") -> None:
        """Stop claiming, finish what runs within the grace, hand the rest back, leave. Killed when it takes longer."""
        if handle.state is RunnerState.EXITED or handle.intent is not Intent.RUN:
            return
        handle.intent, handle.intent_reason = Intent.DRAIN, reason
        handle.kill_at = time.monotonic() + self._grace_of(handle) + ESCALATE_AFTER
        handle.child.signal(signal.SIGTERM)
        self._set_draining(handle, reason)

    def stop(self, handle: RunnerHandle, reason: str = "stopped") -> None:
        """Hand everything back at once and leave."""
        if handle.state is RunnerState.EXITED or handle.intent in {Intent.STOP, Intent.FENCE, Intent.OVERDUE}:
            return
        first_word = handle.intent is Intent.RUN
        handle.intent, handle.intent_reason = Intent.STOP, handle.intent_reason or reason
        handle.kill_at = time.monotonic() + ESCALATE_AFTER
        if first_word:
            handle.child.signal(signal.SIGTERM)
        # Two different signals: of two equal ones in a row the second may be swallowed.
        handle.child.signal(signal.SIGINT)
        self._set_draining(handle, reason)

    def kill(self, handle: RunnerHandle, reason: str = "killed") -> None:
        """Ends the process now; its jobs are handed back unspent."""
        if handle.state is not RunnerState.EXITED:
            handle.intent, handle.intent_reason = Intent.STOP, handle.intent_reason or reason
            handle.child.kill()

    async def settled(self) -> None:
        """Until all ends are recorded and all jobs of the dead are given back, however long the database is away.

        What the database refuses is logged and given up; the reaper finds it.
        """
        while self._burials:
            await asyncio.wait(self._burials)

    async def close(self, *, at_once: bool = False) -> None:
        """Drains all runners, records their ends, leaves. Bounded by the grace and a little, database or not."""
        for handle in self.handles:
            if at_once:
                self.stop(handle)
            else:
                self.drain(handle)
        for handle in self.handles:
            await handle.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING if self._desk.silent_for() < _SILENT else 0.0):
                await self.settled()
        if self._watch_task is not None:
            self._watch_task.cancel()
        for burial in self._burials:
            burial.cancel()
        await self._desk.close()

    # Starting

    async def _register(self, conn: AsyncConnection[Any], worker_id: str, spec: RunnerSpec, queues: list[str]) -> int:
        statement = self._queries.register_worker(
            worker_id=worker_id,
            host=self._host,
            pool=spec.pool,
            supervisor_id=spec.supervisor_id,
            queues=queues,
            concurrency=spec.concurrency,
            version=version("pgq-tui"),
        )
        return await statement.fetch_one(conn) or 0

    def _spawn(self, handle: RunnerHandle) -> None:
        spec = handle.spec
        handle.child = Child(
            on_lines=lambda stream, lines: self._take_lines(handle, stream, lines),
            on_report=lambda report: self._take_report(handle, report),
            on_exit=lambda code: self._see_end(handle, code),
        )
        orders = RunnerOrders(
            worker_id=handle.worker_id,
            slot=handle.slot,
            apps=spec.apps,
            queues=spec.queues,
            concurrency=spec.concurrency,
            burst=spec.burst,
            settings=replace(self._settings, grace=self._grace_of(handle)),
            report_descriptor=-1,
            marks_descriptor=handle.marks.descriptor,
        )
        handle.child.start(orders, handle.marks, cwd=spec.cwd, env=spec.env)

    def _grace_of(self, handle: RunnerHandle) -> float:
        return self._settings.grace if handle.spec.grace is None else handle.spec.grace

    # What runners say

    def _take_lines(self, handle: RunnerHandle, stream: str, lines: list[str]) -> None:
        handle.keep_lines(lines)
        if self._on_output is not None:
            self._on_output(handle, stream, lines)

    def _take_report(self, handle: RunnerHandle, report: Report) -> None:
        match report.kind:
            case ReportKind.READY:
                handle.job_types = report.job_types
                if handle.state is RunnerState.STARTING:
                    handle.state = RunnerState.RUNNING
                self._tell(KeeperEventKind.READY, handle)
            case ReportKind.DRAINING:
                self._set_draining(handle, report.detail)
            case ReportKind.FINISHED:
                handle.is_finished = True
            case ReportKind.REFUSED:
                handle.is_refused, handle.leaving = True, report.detail
            case ReportKind.LEAVING:
                handle.leaving = report.detail

    def _set_draining(self, handle: RunnerHandle, reason: str) -> None:
        if handle.state in {RunnerState.STARTING, RunnerState.RUNNING}:
            handle.state = RunnerState.DRAINING
            self._tell(KeeperEventKind.DRAINING, handle, reason)

    # Ends

    def _see_end(self, handle: RunnerHandle, code: int) -> None:
        ended = exit_of(handle, code)
        marks = handle.marks.started()
        handle.end(ended)
        handle.marks.close()
        del self._handles[handle.worker_id]
        self._log_end(handle, ended)
        burial = Burial(self._queries, handle, marks, random=self._random)
        task = asyncio.create_task(self._desk.do(burial.write, patient=True), name=f"burial of {handle.worker_id}")
        self._burials.add(task)
        task.add_done_callback(self._end_burial)
        self._tell(KeeperEventKind.EXITED, handle, ended.reason)

    def _end_burial(self, task: asyncio.Task[None]) -> None:
        self._burials.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("jobs_not_given_back", error=str(error))

    def _log_end(self, handle: RunnerHandle, ended: RunnerExit) -> None:
        log = self._logger.error if ended.kind.is_fault else self._logger.info
        log(
            "runner_ended",
            worker_id=handle.worker_id,
            pid=handle.pid,
            kind=str(ended.kind),
            exit_code=ended.code,
            exit_signal=ended.signal,
            reason=ended.reason,
        )

    # Beats

    async def _beat(self, conn: AsyncConnection[Any]) -> None:
        handles = {handle.worker_id: handle for handle in self.handles if not self._look_for_suspension(handle)}
        if not handles:
            return
        sent = machine_ns()
        beside = (*self.loops(), *self._loops_beside())
        beats = [handle.beat((*runner_loops(handle, self._settings), *beside)) for handle in handles.values()]
        rows = await self._queries.beat_workers(beats).fetch_all(conn)
        for row in rows:
            handle = handles[row.id]
            if handle.state is RunnerState.EXITED:  # it ended while the beat was under way
                continue
            if row.wanted is not None:
                handle.marks.last_beat_ns = sent
                self._obey(handle, row.wanted)
            else:
                await self._answer_refused_beat(conn, handle, row)

    async def _answer_refused_beat(self, conn: AsyncConnection[Any], handle: RunnerHandle, row: BeatRow) -> None:
        if row.is_ended:
            self._fence(handle, "it was taken for lost and its jobs were given to others")
        elif row.is_locked:
            # Its watchdog ends it when that goes on for too long: unbeaten it may be taken for lost.
            self._logger.warning("worker_row_is_locked", worker_id=handle.worker_id)
        else:
            # Somebody deleted its row: it is there again before anybody takes its jobs for orphans.
            names = [queue.name for queue in served_queues(handle.spec.queues)]
            await self._register(conn, handle.worker_id, handle.spec, names)
            types = handle.job_types
            await self._queries.announce_worker(worker_id=row.id, pid=handle.pid, job_types=types).execute(conn)

    def _look_for_suspension(self, handle: RunnerHandle) -> bool:
        suspended = handle.child.is_suspended()
        if suspended is not handle.is_suspended:
            handle.is_suspended = suspended
            self._tell(KeeperEventKind.SUSPENDED if suspended else KeeperEventKind.RESUMED, handle)
            self._logger.warning("runner_suspended" if suspended else "runner_resumed", worker_id=handle.worker_id)
        return suspended

    def _obey(self, handle: RunnerHandle, wanted: str) -> None:
        if wanted == "run" or handle.intent is Intent.STOP or (handle.intent is Intent.DRAIN and wanted != "stop"):
            return
        self._tell(KeeperEventKind.WANTED, handle, wanted)
        match wanted:
            case "stop":
                self.stop(handle, "stop was asked for")
            case "restart":
                self.drain(handle, "restart was asked for")
            case _:
                self.drain(handle, "drain was asked for")

    # What must not wait for the database

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._until_next_look())
            for handle in self.handles:
                self._look_after(handle)
            self._watched_at = time.monotonic()

    def _until_next_look(self) -> float:
        """Who is to be killed at a moment is killed then: a bounded stop has no half second left."""
        now = time.monotonic()
        kills = [handle.kill_at - now for handle in self.handles if handle.kill_at is not None]
        return max(min(self._settings.heartbeat, _WATCH_INTERVAL, *kills), 0.01)

    def _look_after(self, handle: RunnerHandle) -> None:
        if handle.kill_at is not None and time.monotonic() >= handle.kill_at:
            handle.child.kill()
            return
        working = [mark for mark in handle.marks.started() if not mark.has_ended]
        latest = time.monotonic_ns() - int((self._grace_of(handle) + OVERDUE_MARGIN) * 1e9)
        if any(0 < mark.deadline_ns < latest for mark in working):
            handle.intent, handle.intent_reason = Intent.OVERDUE, "a job held it up beyond its time limit and the grace"
            handle.child.kill()
        elif working and self._is_silenced(handle):
            self._fence(handle, f"no beat got through for {self._settings.stale_limit:g} s")

    def _is_silenced(self, handle: RunnerHandle) -> bool:
        """Whether others may already have its jobs. A suspended one is left as it is: it will find out on waking up."""
        return handle.marks.silence() > self._settings.stale_limit and not handle.child.is_suspended()

    def _fence(self, handle: RunnerHandle, reason: str) -> None:
        handle.intent, handle.intent_reason = Intent.FENCE, f"fenced: {reason}"
        handle.child.kill()

    # Telling

    def _hear(self, words: frozenset[str]) -> None:
        if "workers" in words:
            self._desk.beat_now()
        for word in sorted(words):
            self._tell(KeeperEventKind.WAKE, None, word)

    def _tell_database(self, is_away: bool, detail: str) -> None:
        self._tell(KeeperEventKind.DATABASE_LOST if is_away else KeeperEventKind.DATABASE_BACK, None, detail)

    def _tell(self, kind: KeeperEventKind, handle: RunnerHandle | None, detail: str = "") -> None:
        if self._on_event is not None:
            self._on_event(KeeperEvent(kind, handle, detail))
