"""How long jobs wait under a load that keeps its pace, whatever the queue does."""

from __future__ import annotations

from typing import ClassVar

from pgq_core.bench.draining import checked_runs
from pgq_core.bench.open_loop import OpenLoop, producers_of, run_load, waits_of
from pgq_core.bench.readings import (
    connections_of,
    costs,
    read_counters,
    row_costs,
    take_reading,
    wait_until_alone,
    wal_split,
)
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Scenario
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.trial import Trial

SHARE = 0.7
SECONDS = 60.0


class Steady(Scenario):
    rounds: ClassVar[int] = 1

    @property
    def about(self) -> str:
        return (
            f"an open-loop load of {self._share:.0%} of the capacity for {self._seconds:g} s, send times fixed "
            f"in advance, {self._senders()}, {self._crew()}"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return (f"{self._share:.0%} of capacity",)

    def measure(self, variant: str) -> Measurement:  # noqa: ARG002  # there is one
        capacity = self.bench.capacity(self.worker_count)
        schedule = Schedule(capacity * self._share, self._seconds)
        with (
            self.bench.trial(workers=self.worker_count, stamps=schedule.jobs) as trial,
            producers_of(trial, self.options, schedule) as producers,
        ):
            self.bench.progress.say(f"{schedule.rate:,.0f} jobs/s for {schedule.seconds:g} s")
            counters = read_counters(trial.database)
            before = take_reading(trial.database, trial.fleet, trial.postmaster)
            trial.fleet.go()
            load = run_load(trial, producers, schedule)
            connections = connections_of(trial.database)
            trial.wait_until_started(schedule.jobs)
            trial.wait_until_empty()
            after = take_reading(trial.database, trial.fleet, trial.postmaster)
            trial.fleet.stop()
            wait_until_alone(trial.database)
            return Measurement(
                values={
                    "capacity": capacity,
                    "connections": connections,
                    **load_values(trial, load),
                    **costs(before, after, schedule.jobs),
                    **row_costs(counters, read_counters(trial.database), schedule.jobs),
                },
                series=load_series(trial, load),
                wal_by_relation=wal_split(trial.database, before, after, schedule.jobs),
            )

    @property
    def _share(self) -> float:
        return self.options.share or SHARE

    @property
    def _seconds(self) -> float:
        return self.options.duration or SECONDS


def load_values(trial: Trial, load: OpenLoop, *, jobs_before: int = 0) -> dict[str, float]:
    """How long the jobs of a load took from their time in the schedule; the database has to show each once."""
    checked_runs(trial, jobs_before + load.schedule.jobs)
    return {
        "offered": load.schedule.rate,
        "backlog_growth": load.backlog_growth,
        **waits_of(trial, load, first_job=jobs_before).values,
        **load.producer_lag,
    }


def load_series(trial: Trial, load: OpenLoop, *, jobs_before: int = 0) -> dict[str, list[tuple[float, float]]]:
    waits = waits_of(trial, load, first_job=jobs_before)
    return {"start_p50": list(waits.p50), "start_p99": list(waits.p99), "backlog": list(load.backlog)}
