"""An open-loop load: producers that keep to a schedule while workers work, and how long the jobs had to wait."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.figures import growth, percentile, percentiles_of
from pgq_core.bench.options import BenchOptions
from pgq_core.bench.producer import Call, ProducerOrders, ProducerProcess
from pgq_core.bench.result import Points
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.server import QUEUE, SCHEMA
from pgq_core.bench.trial import Trial

LEAD = 0.3
"""Seconds from the order to start until the first batch is due."""
_SAMPLE_EVERY = 0.1
_MOST_SAMPLES = 1_000_000
_SETTLED_AFTER = 0.25
_LARGEST_GROWTH = 0.01
_CHART_POINTS = 120


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """What one load was and what was seen of it. Times in seconds; `backlog`: jobs that were due but not started."""

    schedule: Schedule
    started_at: float
    calls: tuple[Call, ...]
    backlog: tuple[tuple[float, float], ...]

    @property
    def backlog_growth(self) -> float:
        """Jobs by which the backlog grew once the load had settled: slope of a line through it, times its length."""
        settled = self.schedule.seconds * _SETTLED_AFTER
        return growth([sample for sample in self.backlog if sample[0] >= settled])

    @property
    def holds(self) -> bool:
        """The backlog grew by less than 1 % of what was offered, and in the end holds less than a second of work."""
        offered = self.schedule.jobs * (1 - _SETTLED_AFTER)
        last = self.backlog[-1][1] if self.backlog else 0.0
        return self.backlog_growth < _LARGEST_GROWTH * offered and last < self.schedule.rate

    @property
    def producer_lag(self) -> dict[str, float]:
        """How far behind the schedule a producer called, p99: more than the tick means that it could not keep up."""
        lags = percentiles_of((call.called_at - call.due_at for call in self.calls), "lag")
        return {"producer_lag_p99": lags["lag_p99"]} if lags else {}


@dataclass(frozen=True, slots=True)
class Waits:
    """From a job's time in the schedule to its handler's start and end; `p50` and `p99`: of the start, over time."""

    values: dict[str, float]
    p50: Points
    p99: Points


@contextlib.contextmanager
def producers_of(
    trial: Trial, options: BenchOptions, schedule: Schedule, *, first_job: int = 0
) -> Iterator[list[ProducerProcess]]:
    """Connected producers that wait for their time; killed in the end when they still run."""
    with contextlib.ExitStack() as stack:
        found = []
        for number in range(options.producers):
            orders = ProducerOrders(
                dsn=trial.database.dsn,
                schema=SCHEMA,
                queue=QUEUE,
                work=options.work,
                schedule=schedule,
                number=number,
                producers=options.producers,
                first_job=first_job,
            )
            process = ProducerProcess(orders)
            stack.callback(process.kill)
            found.append(process)
        yield found


def run_load(
    trial: Trial, producers: Sequence[ProducerProcess], schedule: Schedule, *, started_before: int = 0
) -> OpenLoop:
    """Lets producers send the whole schedule and waits for them; the queue is open already.

    `started_before`: jobs that workers had started before.
    """
    started_at = time.monotonic() + LEAD
    for producer in producers:
        producer.start_at(started_at)
    backlog = tuple(_watch(trial, schedule, started_at, started_before))
    calls = [call for producer in producers for call in producer.calls()]
    return OpenLoop(schedule, started_at, tuple(sorted(calls)), backlog)


def waits_of(trial: Trial, load: OpenLoop, *, first_job: int = 0) -> Waits:
    """Of up to a million jobs, evenly chosen. One that never ended raises BenchFailed: no percentile holds then."""
    stride = max(1, load.schedule.jobs // _MOST_SAMPLES)
    samples: list[tuple[float, float]] = []
    ends: list[float] = []
    for batch in load.schedule.batches():
        due = load.started_at + batch.at
        for number in range(batch.first + -batch.first % stride, batch.stop, stride):
            start, end = trial.recording.start_of(first_job + number), trial.recording.end_of(first_job + number)
            if start is None or end is None:
                raise BenchFailed(f"job {number:,} of the load never ended")
            samples.append((batch.at, start - due))
            ends.append(end - due)
    return _summary(samples, ends, load.schedule.seconds)


def _summary(samples: Sequence[tuple[float, float]], ends: Sequence[float], seconds: float) -> Waits:
    values = percentiles_of((wait for _, wait in samples), "start") | percentiles_of(ends, "finish")
    third = len(samples) // 3
    if third:
        values["start_p99_first"] = percentile(sorted(wait for _, wait in samples[:third]), 0.99)
        values["start_p99_last"] = percentile(sorted(wait for _, wait in samples[-third:]), 0.99)
    width = max(1.0, seconds / _CHART_POINTS)
    slices: dict[int, list[float]] = {}
    for at, wait in samples:
        slices.setdefault(int(at / width), []).append(wait)
    ordered = [(number * width, sorted(waits)) for number, waits in sorted(slices.items())]
    return Waits(
        values | {"samples": len(samples)},
        p50=[(at, percentile(waits, 0.5)) for at, waits in ordered],
        p99=[(at, percentile(waits, 0.99)) for at, waits in ordered],
    )


def _watch(trial: Trial, schedule: Schedule, started_at: float, started_before: int) -> Iterator[tuple[float, float]]:
    while (elapsed := time.monotonic() - started_at) < schedule.seconds:
        if elapsed >= 0:
            started = trial.recording.started() - started_before
            yield elapsed, max(0.0, schedule.offered(elapsed) - started)
        trial.fleet.check()
        time.sleep(_SAMPLE_EVERY)
