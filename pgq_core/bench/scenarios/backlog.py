"""Whether the rate depends on how much waits."""

from __future__ import annotations

from typing import ClassVar

from pgq_core.bench.draining import drain
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Comparison, Scenario

ROWS = 10_000_000
_SURPLUS = 1.5
"""The small queue holds more than is measured too, so that neither run ends at an empty table."""


class Backlog(Scenario):
    rounds: ClassVar[int] = 1
    comparison: ClassVar[Comparison | None] = Comparison("rate", "ratio")

    @property
    def about(self) -> str:
        return f"the first {self.options.jobs:,} runs of a queue in which more waits, {self._crew()}"

    @property
    def variants(self) -> tuple[str, ...]:
        return (f"{self._small:,} waiting", f"{self._large:,} waiting")

    def measure(self, variant: str) -> Measurement:
        jobs = self.options.jobs
        rows = self._small if variant == self.variants[0] else self._large
        with self.bench.trial(
            workers=self.worker_count, fill=lambda database: self.bench.fill_with_work(database, rows)
        ) as trial:
            self.bench.progress.say(f"the first {jobs:,} of {rows:,} jobs")
            return drain(trial, jobs, leaves_rest=True)

    @property
    def _small(self) -> int:
        return int(self.options.jobs * _SURPLUS)

    @property
    def _large(self) -> int:
        return max(self.options.rows or ROWS, self._small + 1)
