"""How fast workers empty a queue."""

from __future__ import annotations

from typing import ClassVar

from pgq_core.bench.draining import drain
from pgq_core.bench.result import Measurement
from pgq_core.bench.scenarios.scenario import Scenario


class Drain(Scenario):
    workers: ClassVar[int] = 8

    @property
    def about(self) -> str:
        return (
            f"{self.options.jobs:,} waiting jobs, {self._crew()}; "
            "from the first handler's start until the database shows no job"
        )

    @property
    def variants(self) -> tuple[str, ...]:
        return ("drain",)

    def measure(self, variant: str) -> Measurement:  # noqa: ARG002  # there is one
        jobs = self.options.jobs
        with self.bench.trial(
            workers=self.worker_count, fill=lambda database: self.bench.fill_with_work(database, jobs)
        ) as trial:
            self.bench.progress.say(f"draining {jobs:,} jobs")
            return drain(trial, jobs)
