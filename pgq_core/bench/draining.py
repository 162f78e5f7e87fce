"""Letting workers work off what waits, and what a job of that cost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.fleet import busiest_share
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
from pgq_core.bench.statements import RunTimes
from pgq_core.bench.trial import Trial

_NANO = 1e-9
_LAST_PART = 0.2
_SHARES = (50, 95, 99)
_NOTHING: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


@dataclass(slots=True)
class _Connections:
    trial: Trial
    count: int = 0

    def look(self) -> None:
        self.count = connections_of(self.trial.database)


def drain(
    trial: Trial,
    jobs: int,
    *,
    leaves_rest: bool = False,
    during: contextlib.AbstractContextManager[None] = _NOTHING,
) -> Measurement:
    """Opens the queue, in which at least `jobs` wait, and stops the workers when they are done.

    The rate is taken from the first handler's start until the database shows no job. `leaves_rest`: more than `jobs`
    wait, so it is taken over the first `jobs` runs that ended, by the database's own rows. `during` spans the work.
    """
    counters = read_counters(trial.database)
    before = take_reading(trial.database, trial.fleet, trial.postmaster)
    connections = _Connections(trial)
    with during:
        trial.fleet.go()
        trial.wait_until_started(jobs, at_a_third=connections.look)
        if not leaves_rest:
            trial.wait_until_empty()
        ended_at = time.monotonic_ns()
    after = take_reading(trial.database, trial.fleet, trial.postmaster)
    measured = trial.recording.started() if leaves_rest else jobs
    trial.fleet.stop()
    wait_until_alone(trial.database)
    seconds = (ended_at - (trial.recording.first_start() or 0)) * _NANO
    times = checked_runs(trial, jobs, leaves_rest=leaves_rest)
    rates = trial.database.statements.list_rates().fetch_all_sync(trial.database.conn)
    shares = trial.recording.shares()
    return Measurement(
        values={
            "rate": _rate_of_first_runs(trial, jobs) if leaves_rest else jobs / seconds,
            "connections": connections.count,
            **({"busiest_share": busiest_share(shares)} if len(shares) > 1 else {}),
            **run_percentiles(times),
            **costs(before, after, measured),
            **row_costs(counters, read_counters(trial.database), times.runs),
        },
        series={"throughput": [(row.second, row.runs) for row in rates[:-1]]},  # the last second is a broken one
        wal_by_relation=wal_split(trial.database, before, after, measured),
    )


def checked_runs(trial: Trial, jobs: int, *, leaves_rest: bool = False) -> RunTimes:
    """Raises BenchFailed when the database does not show one run for each job: then no figure counts."""
    times = trial.database.statements.read_run_times().fetch_one_sync(trial.database.conn)
    if times is None:
        raise AssertionError("an aggregate without a group is always one row")
    if times.runs != times.jobs or times.jobs < jobs or (times.jobs > jobs and not leaves_rest):
        raise BenchFailed(
            f"{jobs:,} jobs were to run once each; the database shows {times.runs:,} runs of {times.jobs:,}"
        )
    return times


def run_percentiles(times: RunTimes) -> dict[str, float]:
    """From the due time to the start and to the end, by metric name."""
    found: dict[str, float] = {}
    for prefix, values in (("start", times.to_start), ("finish", times.to_finish)):
        found |= {f"{prefix}_p{share}": value for share, value in zip(_SHARES, values or (), strict=False)}
    return found


def _rate_of_first_runs(trial: Trial, jobs: int) -> float:
    first = trial.database.statements.read_rate_of_first_runs(jobs).fetch_one_sync(trial.database.conn)
    if first is None or not first.seconds:
        raise BenchFailed(f"{jobs:,} jobs ended within no measurable time: ask for more")
    return first.runs / first.seconds


def rate_of_last_part(runs_by_second: Sequence[int]) -> float:
    """The mean of the last fifth of the whole seconds.

    >>> rate_of_last_part([5, 10, 10, 10, 10, 3])
    10.0
    """
    whole = runs_by_second[1:-1] or runs_by_second
    part = whole[-max(1, int(len(whole) * _LAST_PART)) :]
    return sum(part) / len(part) if part else 0.0
