"""How soon a job starts on an idle queue, and what idling costs."""

from __future__ import annotations

import time
from typing import ClassVar

from pgq_core.bench.figures import percentiles_of
from pgq_core.bench.open_loop import LEAD
from pgq_core.bench.producer import Call, ProducerOrders, ProducerProcess
from pgq_core.bench.readings import connections_of
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Scenario
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.server import QUEUE, SCHEMA, BenchDatabase
from pgq_core.bench.trial import Trial

INTERVAL = 0.05
SECONDS = 10.0
IDLE_SECONDS = 5.0
DUE_LATER = 1.0
_FIRST_JOBS = 5
"""Left out: the first jobs prepare statements."""
_CLOCK_LOOKS = 50


class Latency(Scenario):
    workers: ClassVar[int] = 1

    @property
    def about(self) -> str:
        return (
            f"one job every {INTERVAL * 1000:g} ms for {self._seconds:g} s from another process, {self._crew()}; "
            f"due at once, and due {DUE_LATER:g} s after its enqueue"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("due at once", "due later")

    def measure(self, variant: str) -> Measurement:
        schedule = Schedule(1 / INTERVAL, self._seconds, tick=INTERVAL)
        with self.bench.trial(workers=self.worker_count, stamps=schedule.jobs) as trial:
            trial.fleet.go()
            trial.fleet.wait_until_idle()
            self.bench.progress.say("idle")
            values = self._idle_cost(trial)
            self.bench.progress.say(f"{schedule.jobs} jobs, {variant}")
            due_later = None if variant == self.variants[0] else DUE_LATER
            calls, started_at = self._send(trial, schedule, due_later)
            trial.wait_until_started(schedule.jobs)
            starts = [trial.recording.start_of(number) or 0.0 for number in range(schedule.jobs)]
            values |= (
                _waits(calls, starts) if due_later is None else _lateness(schedule, starts, started_at + due_later)
            )
            return Measurement(values | {"samples": schedule.jobs - _FIRST_JOBS})

    def _idle_cost(self, trial: Trial) -> dict[str, float]:
        seconds = min(IDLE_SECONDS, self._seconds)
        before = trial.fleet.usage()
        time.sleep(seconds)
        after = trial.fleet.usage()
        return {
            "connections": connections_of(trial.database),
            "idle_runner": (after.runners.cpu - before.runners.cpu) / seconds / self.worker_count,
            "idle_keeper": (after.keepers.cpu - before.keepers.cpu) / seconds / self.worker_count,
            "rss_runner": after.runners.largest_rss / 1e6,
            "rss_keeper": after.keepers.largest_rss / 1e6,
        }

    def _send(self, trial: Trial, schedule: Schedule, due_later: float | None) -> tuple[list[Call], float]:
        orders = ProducerOrders(
            dsn=trial.database.dsn,
            schema=SCHEMA,
            queue=QUEUE,
            work=self.options.work,
            schedule=schedule,
            one_by_one=True,
            due_later=due_later,
            clock_offset=clock_offset(trial.database),
        )
        producer = ProducerProcess(orders)
        try:
            started_at = time.monotonic() + LEAD
            producer.start_at(started_at)
            return producer.calls(), started_at
        finally:
            producer.kill()

    @property
    def _seconds(self) -> float:
        return self.options.duration or SECONDS


def clock_offset(database: BenchDatabase) -> float:
    """The database's clock less this machine's monotonic one, from the quickest of some round trips."""
    statement = database.statements.read_clock()
    looks = []
    for _ in range(_CLOCK_LOOKS):
        asked_at = time.monotonic()
        clock = statement.fetch_one_sync(database.conn) or 0.0
        answered_at = time.monotonic()
        looks.append((answered_at - asked_at, clock - (asked_at + answered_at) / 2))
    return min(looks)[1]


def _waits(calls: list[Call], starts: list[float]) -> dict[str, float]:
    """From the return of the enqueue call, which is its commit, and from its beginning."""
    pairs = list(zip(calls, starts, strict=True))[_FIRST_JOBS:]
    return {
        **percentiles_of((start - call.returned_at for call, start in pairs), "commit_start"),
        **percentiles_of((start - call.called_at for call, start in pairs), "call_start"),
    }


def _lateness(schedule: Schedule, starts: list[float], first_due_at: float) -> dict[str, float]:
    due = [first_due_at + batch.at for batch in schedule.batches() for _ in range(batch.first, batch.stop)]
    return percentiles_of(
        (start - at for start, at in zip(starts[_FIRST_JOBS:], due[_FIRST_JOBS:], strict=True)), "late"
    )
