"""One measurement under way: a fresh database and workers that wait for the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.fleet import WorkerFleet
from pgq_core.bench.recorder import Recording
from pgq_core.bench.server import BenchDatabase

STALL_SECONDS = 30.0
_POLL = 0.005


@dataclass(frozen=True, slots=True)
class Trial:
    """`fleet` is ready behind a paused queue until its `go()`."""

    database: BenchDatabase
    recording: Recording
    fleet: WorkerFleet
    postmaster: int | None

    def wait_until_started(self, jobs: int, *, at_a_third: Callable[[], None] = lambda: None) -> None:
        """Until handlers of so many jobs have begun. Raises BenchFailed when nothing begins for half a minute."""
        last, moved_at, is_before_third = -1, time.monotonic(), True
        while (started := self.recording.started()) < jobs:
            now = time.monotonic()
            if started != last:
                last, moved_at = started, now
            elif now - moved_at > STALL_SECONDS:
                raise BenchFailed(f"no job has started for {STALL_SECONDS:g} s; {started:,} of {jobs:,} had")
            if is_before_third and started > jobs / 3:
                is_before_third = False
                at_a_third()
            self.fleet.check()
            time.sleep(_POLL)

    def wait_until_empty(self) -> None:
        """Until the database shows no job that has not ended."""
        statement = self.database.statements.has_jobs()
        deadline = time.monotonic() + STALL_SECONDS
        while statement.fetch_one_sync(self.database.conn):
            if time.monotonic() > deadline:
                raise BenchFailed(f"every job has started, but some have not ended for {STALL_SECONDS:g} s")
            self.fleet.check()
            time.sleep(_POLL)
