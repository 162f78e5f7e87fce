"""Whether a forgotten transaction slows the queue down: nothing that ended since it began can be vacuumed away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from psycopg import IsolationLevel

from pgq_core.bench.draining import rate_of_last_part
from pgq_core.bench.open_loop import producers_of, run_load
from pgq_core.bench.readings import read_counters
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Comparison, Scenario
from pgq_core.bench.scenarios.steady import load_series, load_values
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.server import BenchDatabase
from pgq_core.bench.trial import Trial
from pgq_core.database import connect_sync

ROWS = 5_000_000
SHARE = 0.6
SECONDS = 60.0
_FEWEST_SECONDS = 12
"""Below that the last fifth is too short to be a rate."""


class HeldSnapshot(Scenario):
    """The same workers drain a large queue, which leaves its dead entries, and then serve an open-loop load."""

    rounds: ClassVar[int] = 1
    comparison: ClassVar[Comparison | None] = Comparison("rate", "ratio")

    @property
    def about(self) -> str:
        return (
            f"{self._rows:,} waiting jobs drained, then an open-loop load of {self._share:.0%} of the capacity for "
            f"{self._seconds:g} s, {self._crew()}; another session holds a snapshot from before the first job"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("no snapshot", "snapshot held")

    def measure(self, variant: str) -> Measurement:
        schedule = Schedule(self.bench.capacity(self.worker_count) * self._share, self._seconds)
        with (
            self.bench.trial(
                workers=self.worker_count,
                stamps=self._rows + schedule.jobs,
                fill=lambda database: self.bench.fill_with_work(database, self._rows),
            ) as trial,
            producers_of(trial, self.options, schedule, first_job=self._rows) as producers,
            _snapshot(trial.database) if variant != self.variants[0] else contextlib.nullcontext(),
        ):
            self.bench.progress.say(f"draining {self._rows:,} jobs, {variant}")
            values, rates = self._drain(trial)
            self.bench.progress.say(f"{schedule.rate:,.0f} jobs/s for {schedule.seconds:g} s, {variant}")
            load = run_load(trial, producers, schedule, started_before=self._rows)
            trial.wait_until_started(self._rows + schedule.jobs)
            trial.wait_until_empty()
            trial.fleet.stop()
            jobs = self._rows + schedule.jobs
            return Measurement(
                values={
                    **values,
                    **load_values(trial, load, jobs_before=self._rows),
                    "dead_tuples": read_counters(trial.database).dead / jobs,
                },
                series={"throughput": rates, **load_series(trial, load, jobs_before=self._rows)},
            )

    def _drain(self, trial: Trial) -> tuple[dict[str, float], list[tuple[float, float]]]:
        trial.fleet.go()
        trial.wait_until_started(self._rows)
        trial.wait_until_empty()
        first = trial.database.statements.read_rate_of_first_runs(self._rows).fetch_one_sync(trial.database.conn)
        rates = trial.database.statements.list_rates().fetch_all_sync(trial.database.conn)
        values = {"rate_last": rate_of_last_part([row.runs for row in rates])} if len(rates) > _FEWEST_SECONDS else {}
        if first is not None and first.seconds:
            values["rate"] = first.runs / first.seconds
        return values, [(row.second, row.runs) for row in rates[:-1]]

    @property
    def _rows(self) -> int:
        return self.options.rows or ROWS

    @property
    def _share(self) -> float:
        return self.options.share or SHARE

    @property
    def _seconds(self) -> float:
        return self.options.duration or SECONDS


@contextlib.contextmanager
def _snapshot(database: BenchDatabase) -> Iterator[None]:
    """A session that sees the database as it is now until the block ends."""
    with connect_sync(database.dsn, application_name="pgq bench snapshot", idle_limit=None) as conn:
        conn.isolation_level = IsolationLevel.REPEATABLE_READ
        with conn.transaction():
            database.statements.read_clock().fetch_one_sync(conn)
            yield
