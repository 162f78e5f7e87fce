"""How fast jobs get in, and what one enqueue costs its caller while the queue is idle, loaded and draining."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import ClassVar

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.figures import percentiles_of
from pgq_core.bench.open_loop import LEAD, producers_of
from pgq_core.bench.producer import ProducerOrders, ProducerProcess
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Comparison, Scenario
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.server import PROGRAM, QUEUE, SCHEMA, BenchDatabase
from pgq_core.bench.trial import Trial
from pgq_core.job_queue import JobQueue, JobRequest

SHARE = 0.7
SECONDS = 10.0
INTERVAL = 0.01
SINGLE_JOBS = 3_000
CHUNK = 5_000
_FIRST_CALLS = 10
"""Left out: the first calls prepare statements."""
_SETTLE_SECONDS = 1.0
_DRAIN_SURPLUS = 4.0
"""A drain without producers is faster than the capacity, and has to outlast the callers."""


class Enqueue(Scenario):
    comparison: ClassVar[Comparison | None] = Comparison("call_p99", "call_ratio", base=2)

    @property
    def about(self) -> str:
        return (
            f"{self._singles:,} jobs one by one and {self.options.jobs:,} in batches of {CHUNK:,}, one connection, "
            f"no worker; then one enqueue every {INTERVAL * 1000:g} ms for {self._seconds:g} s beside {self._crew()}"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("one by one", "in bulk", "idle queue", f"{self._share:.0%} of capacity", "full drain")

    def measure(self, variant: str) -> Measurement:
        one_by_one, bulk, idle, loaded, _ = self.variants
        if variant == one_by_one:
            return self._throughput(self._singles, 1)
        if variant == bulk:
            return self._throughput(self.options.jobs, CHUNK)
        if variant == idle:
            return self._beside_idle_workers()
        if variant == loaded:
            return self._beside_a_load()
        return self._beside_a_drain()

    def _throughput(self, jobs: int, chunk: int) -> Measurement:
        with (
            self.bench.server.fresh_database() as database,
            JobQueue(database.dsn, schema=SCHEMA, application_name=PROGRAM) as queue,
        ):
            database.checkpoint()
            self._send(queue, 0, chunk)
            self.bench.progress.say(f"{jobs:,} jobs in batches of {chunk:,}")
            wal = _wal_bytes(database)
            started_at = time.monotonic()
            for first in range(0, jobs, chunk):
                self._send(queue, first, min(jobs, first + chunk))
            seconds = time.monotonic() - started_at
            return Measurement({"rate": jobs / seconds, "wal_bytes": (_wal_bytes(database) - wal) / jobs})

    def _send(self, queue: JobQueue, first: int, stop: int) -> None:
        work = self.options.work
        if stop == first + 1:
            queue.enqueue(work.job_type, work.data(first), queue=QUEUE)
        else:
            queue.enqueue_many(
                JobRequest(work.job_type, work.data(number), queue=QUEUE) for number in range(first, stop)
            )

    def _beside_idle_workers(self) -> Measurement:
        with self.bench.trial(workers=self.worker_count) as trial, self._caller(trial) as caller:
            trial.fleet.go()
            trial.fleet.wait_until_idle()
            return self._called(caller)

    def _beside_a_load(self) -> Measurement:
        rate = self.bench.capacity(self.worker_count) * self._share
        schedule = Schedule(rate, self._seconds + 2 * _SETTLE_SECONDS)
        with (
            self.bench.trial(workers=self.worker_count) as trial,
            producers_of(trial, self.options, schedule) as producers,
            self._caller(trial) as caller,
        ):
            trial.fleet.go()
            for producer in producers:
                producer.start_at(time.monotonic() + LEAD)
            time.sleep(LEAD + _SETTLE_SECONDS)
            measured = self._called(caller)
            for producer in producers:
                producer.calls()
            return measured

    def _beside_a_drain(self) -> Measurement:
        rows = int(self.bench.capacity(self.worker_count) * (self._seconds + 2 * _SETTLE_SECONDS) * _DRAIN_SURPLUS)
        with (
            self.bench.trial(
                workers=self.worker_count, fill=lambda database: self.bench.fill_with_work(database, rows)
            ) as trial,
            self._caller(trial) as caller,
        ):
            trial.fleet.go()
            time.sleep(_SETTLE_SECONDS)
            measured = self._called(caller)
            if trial.recording.started() >= rows:
                raise BenchFailed(f"the drain of {rows:,} jobs was over before the callers were: ask for less time")
            return measured

    @contextlib.contextmanager
    def _caller(self, trial: Trial) -> Iterator[ProducerProcess]:
        """A process that will enqueue one job at fixed times, as a web shop's checkout would."""
        orders = ProducerOrders(
            dsn=trial.database.dsn,
            schema=SCHEMA,
            queue=QUEUE,
            work=self.options.work,
            schedule=Schedule(1 / INTERVAL, self._seconds, tick=INTERVAL),
            one_by_one=True,
        )
        process = ProducerProcess(orders)
        try:
            yield process
        finally:
            process.kill()

    def _called(self, caller: ProducerProcess) -> Measurement:
        """Lets it call; each call counts from its time in the schedule."""
        self.bench.progress.say("one enqueue after the other, at fixed times")
        caller.start_at(time.monotonic() + LEAD)
        calls = caller.calls()[_FIRST_CALLS:]
        values = percentiles_of((call.returned_at - call.due_at for call in calls), "call")
        return Measurement(values | {"samples": len(calls)})

    @property
    def _singles(self) -> int:
        return min(SINGLE_JOBS, self.options.jobs)

    @property
    def _share(self) -> float:
        return self.options.share or SHARE

    @property
    def _seconds(self) -> float:
        return self.options.duration or SECONDS


def _wal_bytes(database: BenchDatabase) -> float:
    position = database.statements.read_wal_position().fetch_one_sync(database.conn)
    return position.bytes if position else 0.0
