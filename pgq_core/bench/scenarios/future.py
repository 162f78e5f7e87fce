"""Whether jobs of the future, with a higher priority than all that is due, stand in the way."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from pgq_core.bench.bench import FILL_AT_ONCE
from pgq_core.bench.draining import drain
from pgq_core.bench.options import Work
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Comparison, Scenario
from pgq_core.bench.server import BenchDatabase

ROWS = 1_000_000
_PRIORITY = 100
_DELAY = timedelta(days=1)
_SURPLUS = 1.5


class Future(Scenario):
    comparison: ClassVar[Comparison | None] = Comparison("rate", "ratio")

    @property
    def about(self) -> str:
        return (
            f"the first {self.options.jobs:,} runs of a queue, {self._crew()}; "
            f"the jobs in front are due tomorrow and have priority {_PRIORITY}, the others 0"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("none in front", f"{self._rows:,} in front")

    def measure(self, variant: str) -> Measurement:
        jobs = self.options.jobs
        rows = 0 if variant == self.variants[0] else self._rows

        def fill(database: BenchDatabase) -> None:
            self._fill_future(database, rows)
            self.bench.fill_with_work(database, int(jobs * _SURPLUS))

        with self.bench.trial(workers=self.worker_count, fill=fill) as trial:
            self.bench.progress.say(f"{jobs:,} jobs, {variant}")
            return drain(trial, jobs, leaves_rest=True)

    @property
    def _rows(self) -> int:
        return self.options.rows or ROWS

    def _fill_future(self, database: BenchDatabase, rows: int) -> None:
        for first in range(0, rows, FILL_AT_ONCE):
            stop = min(rows, first + FILL_AT_ONCE)
            self.bench.progress.say(f"writing jobs of the future, {stop:,} of {rows:,}")
            statement = database.statements.fill_jobs(
                first=first,
                stop=stop,
                job_type=self.options.work.job_type,
                data=Work().data(0),
                priority=_PRIORITY,
                delay=_DELAY,
            )
            statement.execute_sync(database.conn)
