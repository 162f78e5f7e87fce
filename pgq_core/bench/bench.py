"""What every scenario works with: the options, the server, and trials on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from pgq_core.bench.capacity import find_capacity
from pgq_core.bench.draining import drain
from pgq_core.bench.fleet import WorkerFleet
from pgq_core.bench.open_loop import producers_of, run_load
from pgq_core.bench.options import BenchOptions
from pgq_core.bench.progress import BenchProgress
from pgq_core.bench.recorder import recording
from pgq_core.bench.schedule import Schedule
from pgq_core.bench.server import BenchDatabase, BenchServer
from pgq_core.bench.trial import Trial

FILL_AT_ONCE: Final = 250_000
_FIRST_GUESS: Final = 0.4
"""Of the rate of a drain: producers and their half of the server's work share the machine."""


class Bench:
    def __init__(self, options: BenchOptions, server: BenchServer, progress: BenchProgress) -> None:
        self.options = options
        self.server = server
        self.progress = progress
        self._capacities: dict[int, float] = {}

    @contextlib.contextmanager
    def trial(
        self, *, workers: int, stamps: int = 0, fill: Callable[[BenchDatabase], None] = lambda _: None
    ) -> Iterator[Trial]:
        """`stamps`: for how many job numbers the start times are kept. `fill` puts rows into the empty database."""
        with contextlib.ExitStack() as stack:
            database = stack.enter_context(self.server.fresh_database())
            database.checkpoint()
            fill(database)
            database.statements.analyze_jobs().execute_sync(database.conn)
            memory = stack.enter_context(recording(workers, stamps=stamps))
            self.progress.say(f"starting workers: {workers}")
            fleet = WorkerFleet(database, memory, workers=workers, concurrency=self.options.concurrency)
            yield Trial(database, memory, stack.enter_context(fleet), self.server.postmaster)

    def fill_with_work(self, database: BenchDatabase, jobs: int) -> None:
        """Due jobs of the kind asked for, numbered from 0."""
        work = self.options.work
        for first in range(0, jobs, FILL_AT_ONCE):
            stop = min(jobs, first + FILL_AT_ONCE)
            self.progress.say(f"writing jobs, {stop:,} of {jobs:,}")
            statement = database.statements.fill_jobs(first=first, stop=stop, job_type=work.job_type, data=work.data(0))
            statement.execute_sync(database.conn)

    def capacity(self, workers: int) -> float:
        """Jobs a second that producers and so many workers together sustain; searched for once, unless it was given."""
        if self.options.capacity is not None:
            return self.options.capacity
        if workers not in self._capacities:
            self._capacities[workers] = find_capacity(
                lambda rate, seconds: self._holds(workers, rate, seconds), self._first_guess(workers)
            )
        return self._capacities[workers]

    def _first_guess(self, workers: int) -> float:
        jobs = self.options.jobs
        with self.trial(workers=workers, fill=lambda database: self.fill_with_work(database, jobs)) as trial:
            self.progress.say("a drain, for a first guess at the capacity")
            return drain(trial, jobs).values["rate"] * _FIRST_GUESS

    def _holds(self, workers: int, rate: float, seconds: float) -> bool:
        schedule = Schedule(rate, seconds)
        with self.trial(workers=workers) as trial, producers_of(trial, self.options, schedule) as producers:
            self.progress.say(f"searching the capacity, {rate:,.0f} jobs/s for {seconds:g} s")
            trial.fleet.go()
            return run_load(trial, producers, schedule).holds
