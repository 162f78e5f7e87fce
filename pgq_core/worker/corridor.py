"""The corridor of one runner put together: producer -> executor -> completer, on two connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import set_json_loads

from pgq_core.database import LOCK_LIMIT
from pgq_core.domain.payload import decode_any
from pgq_core.handlers import Registry, Resources
from pgq_core.listener import Listener
from pgq_core.queries import Queries
from pgq_core.worker.announcement import Announcer
from pgq_core.worker.attempt import Attempt, Verdict
from pgq_core.worker.calls import Calls
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.completer import Completer
from pgq_core.worker.endings import Endings
from pgq_core.worker.executor import Executor
from pgq_core.worker.job_log import JobLog
from pgq_core.worker.marks import TEND_EVERY, Marks, Turn
from pgq_core.worker.producer import Producer
from pgq_core.worker.protocol import RunnerOrders
from pgq_core.worker.spec import served_queues
from pgq_core.worker.traces import traced_registry
from pgq_core.worker.transactional import JobTransactions
from pgq_core.worker.watchdog import safe_silence
from pgq_core.worker.writer import Writer

DESCRIPTORS_TO_SPARE = 4
"""A connection that is given up leaves one, and takes it again at the next try."""
UNWINDING = 0.5
"""Seconds that interrupted coroutines have for their `finally`."""


class Corridor:
    """Opens, runs and drains the three stations."""

    def __init__(
        self,
        orders: RunnerOrders,
        registry: Registry,
        marks: Marks,
        resources: Resources,
        *,
        on_stuck: Callable[[str], None],
        on_spoiled: Callable[[str], None],
    ) -> None:
        settings = orders.settings
        self._dsn = settings.dsn or ""
        queries = Queries(settings.db_schema)
        clock, random = DatabaseClock(), Random()  # noqa: S311 - jitter, no secret
        registry = traced_registry(registry, clock, orders.worker_id)
        self._marks = marks
        self._on_spoiled = on_spoiled
        self._log = JobLog(orders.worker_id, keep_all=settings.log_jobs == "all", debug=settings.log_level == "debug")
        self.listener = Listener(
            self._dsn,
            settings.db_schema,
            application_name="pgq worker: claim",
            pinned_plans=True,
            lock_limit=LOCK_LIMIT,
            prepare=_read_json_with_care,
        )
        self.writer = Writer(
            self._dsn,
            queries,
            marks,
            clock,
            self._log,
            worker_id=orders.worker_id,
            slot=orders.slot,
            on_written=self._forget,
            on_retry=lambda delay: self.producer.due_in(delay),  # noqa: PLW0108 - the producer comes last
        )
        self.completer = Completer(
            self.writer,
            marks,
            worker_id=orders.worker_id,
            has_more_work=lambda: bool(self.executor.ready),
            on_change=lambda: self.producer.wake(),  # noqa: PLW0108 - the same
        )
        self._transactions = JobTransactions(self._dsn, queries, worker_id=orders.worker_id, slot=orders.slot)
        endings = Endings(orders.worker_id, clock, random)
        longest_silence = safe_silence(settings.stale_limit)

        def is_silent() -> bool:
            return marks.silence() > longest_silence

        calls = Calls(
            registry,
            self._transactions,
            endings,
            resources,
            worker_id=orders.worker_id,
            concurrency=orders.concurrency,
        )
        self.executor = Executor(
            registry,
            calls,
            endings,
            marks,
            self.completer,
            fetch_data=self.writer.with_data,
            concurrency=orders.concurrency,
            job_timeout=settings.job_timeout,
            grace=settings.grace,
            on_room=lambda: self.producer.wake(),  # noqa: PLW0108 - the same
            on_stuck=on_stuck,
            is_silent=is_silent,
            on_start=self._log.started if self._log.is_debug else None,
        )
        self.producer = Producer(
            self.listener,
            self.executor,
            self.completer,
            queries=queries,
            clock=clock,
            log=self._log,
            worker_id=orders.worker_id,
            queues=served_queues(orders.queues),
            job_types=registry.types,
            poll=settings.poll,
            roll_call_every=settings.stale_limit,
            burst=orders.burst,
            random=random,
            on_turn=lambda: marks.turned(Turn.CLAIM),
            on_sweep=lambda at: marks.rests(Turn.SWEEP) if at is None else marks.turned_at(Turn.SWEEP, at),
            is_silent=is_silent,
        )
        self.announcer = Announcer(self.writer, queries, registry, marks, worker_id=orders.worker_id)
        self._tasks: list[asyncio.Task[None]] = []
        self._never = asyncio.Event()

    async def open(self) -> None:
        """Both connections, and the announcement. Raises what the database raises."""
        await self.listener.connection()
        await self.announcer.run_once()

    def start(self) -> Sequence[asyncio.Task[None]]:
        """The stations' tasks; the producer's comes first."""
        self._tasks = [
            asyncio.create_task(self.producer.run(), name="producer"),
            asyncio.create_task(self.completer.run(), name="completer"),
            asyncio.create_task(self._tend(), name="tender"),
        ]
        return self._tasks

    async def stop_claiming(self, timeout: float) -> None:
        """No claim after this; what was claimed and has not started is on its way back."""
        self.producer.stop()
        producer = self._tasks[0]
        await asyncio.wait([producer], timeout=timeout)
        producer.cancel()  # when a claim hangs: what it may have claimed, our keeper gives back
        self.completer.release([*self.executor.take_unstarted(), *self.executor.take_late()])

    async def finish_running(self, timeout: float, hurry: asyncio.Event) -> bool:
        """Waits for what runs. False when something still did at the end, or somebody was in a hurry."""
        quiet = asyncio.ensure_future(self.executor.wait_until_quiet())
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            await asyncio.wait([quiet, hurried], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return quiet.done()
        finally:
            quiet.cancel()
            hurried.cancel()

    async def interrupt(self, verdict: Verdict) -> None:
        """Stops what can be stopped, and lets it unwind for a moment."""
        self.executor.interrupt(verdict)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNWINDING):
                await self.executor.wait_until_quiet()

    async def write_out(self, timeout: float) -> bool:
        """Whether all outcomes are written within `timeout`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.completer.wait_until_empty()
        self._log.tick()
        return self.completer.is_empty()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.completer.close()
        await self.listener.close()
        await self._transactions.close()

    def _forget(self, attempts: Sequence[Attempt]) -> None:
        self.executor.forget(attempts)
        if self.executor.low_water >= 0 and not self.executor.ready:
            self.producer.wake()

    async def _tend(self) -> None:
        """The summary lines of the log, once a second, and the announcement, once an hour."""
        announcing = asyncio.create_task(self._announce_again())
        try:
            while True:
                self._marks.turned(Turn.TEND)
                if not can_open_files():
                    self._on_spoiled("no file descriptor is left: jobs have opened files and not closed them")
                await asyncio.sleep(TEND_EVERY)
                self._log.tick()
                for attempt in self.executor.take_long_transactions():
                    self._log.warn_about_transaction(attempt)
        finally:
            announcing.cancel()

    async def _announce_again(self) -> None:
        await asyncio.sleep(self.announcer.interval)
        await self.announcer.run(self._never)


def can_open_files() -> bool:
    """Without descriptors to spare no connection comes back, and nothing here would ever change that."""
    opened: list[int] = []
    try:
        for _ in range(DESCRIPTORS_TO_SPARE):
            opened.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - those opened before a failure are closed
    except OSError as error:
        return error.errno != errno.EMFILE
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def _read_json_with_care(conn: AsyncConnection[Any]) -> None:
    """One payload that Python cannot read must not make a whole claim unreadable."""
    set_json_loads(decode_any, conn)
