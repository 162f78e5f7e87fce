"""What an open console costs: the same drain with and without somebody looking."""

from __future__ import annotations

from typing import ClassVar

from pgq_core.bench.bench import FILL_AT_ONCE
from pgq_core.bench.draining import drain
from pgq_core.bench.onlooker import TICK, Onlooker
from pgq_core.bench.options import Work
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Comparison, Scenario
from pgq_core.bench.server import BenchDatabase

ROWS = 1_000_000
OTHER_QUEUE = "bench-waiting"
_TIMES = 10
"""A drain of a second or two would see two ticks."""


class Console(Scenario):
    rounds: ClassVar[int] = 1
    comparison: ClassVar[Comparison | None] = Comparison("rate", "ratio")

    @property
    def about(self) -> str:
        return (
            f"{self._jobs:,} jobs drained beside {self._rows:,} that wait in a queue nobody serves, {self._crew()}; "
            f"the dashboard read every {TICK:g} s"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("no console", "one console")

    def measure(self, variant: str) -> Measurement:
        with self.bench.trial(workers=self.worker_count, fill=self._fill) as trial:
            self.bench.progress.say(f"draining {self._jobs:,} jobs, {variant}")
            if variant == self.variants[0]:
                return drain(trial, self._jobs)
            with Onlooker(trial.database.dsn, trial.postmaster) as onlooker:
                measured = drain(trial, self._jobs, during=onlooker.watched())
                values = {**measured.values, **onlooker.values()}
                return Measurement(values, measured.series, measured.wal_by_relation)

    def _fill(self, database: BenchDatabase) -> None:
        for first in range(0, self._rows, FILL_AT_ONCE):
            stop = min(self._rows, first + FILL_AT_ONCE)
            self.bench.progress.say(f"writing a queue nobody serves, {stop:,} of {self._rows:,}")
            statement = database.statements.fill_jobs(
                first=first, stop=stop, job_type=Work().job_type, data=Work().data(0), queue=OTHER_QUEUE
            )
            statement.execute_sync(database.conn)
        self.bench.fill_with_work(database, self._jobs)

    @property
    def _jobs(self) -> int:
        return self.options.jobs * _TIMES

    @property
    def _rows(self) -> int:
        return self.options.rows or ROWS
