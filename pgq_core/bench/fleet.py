"""Worker processes as anybody would start them, `pgq-core worker`, for as long as a measurement needs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.machine import Usage, children_of, usage_of
from pgq_core.bench.recorder import Recording
from pgq_core.bench.server import QUEUE, SCHEMA, BenchDatabase

APP = "pgq_core.bench.handlers:registry"
READY_SECONDS = 60.0
STOP_SECONDS = 40.0
"""Longer than the grace of a worker."""
_PROGRAM = "import sys; from pgq_core.cli import main; sys.exit(main())"
_POLL = 0.02
_LAST_WORDS = 4000


@dataclass(frozen=True, slots=True)
class FleetUsage:
    """Of all runners and of all keepers."""

    runners: Usage
    keepers: Usage


class WorkerFleet:
    """`with` starts the workers behind a paused queue and waits until each is ready; `go()` opens it."""

    def __init__(self, database: BenchDatabase, recording: Recording, *, workers: int, concurrency: int | None) -> None:
        self._database = database
        self._recording = recording
        self._workers = workers
        self._concurrency = concurrency
        self._keepers: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []
        self._runners: list[int] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            home = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pgq-bench-"))
            self._stack.callback(self.stop)
            self._database.statements.pause_queue().execute_sync(self._database.conn)
            for slot in range(self._workers):
                self._start(slot, Path(home))
            self._wait_until_ready()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def go(self) -> None:
        """Opens the queue and wakes whoever sleeps."""
        self._database.statements.resume_queue().execute_sync(self._database.conn)

    def usage(self) -> FleetUsage:
        return FleetUsage(
            usage_of(self._runners, apart_from=self._recording.path), usage_of(keeper.pid for keeper in self._keepers)
        )

    def check(self) -> None:
        """Raises BenchFailed with its last words when a worker has died."""
        for slot, keeper in enumerate(self._keepers):
            if keeper.poll() is not None:
                raise BenchFailed(f"worker {slot} ended with code {keeper.returncode}: {self._last_words(slot)}")

    def wait_until_idle(self) -> None:
        """Until every worker sleeps until it is woken."""
        statement = self._database.statements.count_waiting_workers()
        for _ in self._attempts():
            if statement.fetch_one_sync(self._database.conn) == self._workers:
                return
        raise BenchFailed(f"the workers of an empty queue did not fall asleep within {READY_SECONDS:g} s")

    def stop(self) -> None:
        """Asks all to drain and waits for them; whoever does not end is killed."""
        for keeper in self._keepers:
            if keeper.poll() is None:
                keeper.terminate()
        for keeper in self._keepers:
            try:
                keeper.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                keeper.kill()
                keeper.wait()
        for log in self._logs:
            log.close()
        self._keepers, self._logs = [], []

    def _start(self, slot: int, home: Path) -> None:
        # The log goes to a file, as under a service manager: writing it is part of what a worker costs.
        log = (home / f"worker-{slot}.log").open("w+b")
        self._logs.append(log)
        self._keepers.append(
            subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, "worker", "--app", APP],
                env=self._environment(slot, home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        )

    def _environment(self, slot: int, home: Path) -> dict[str, str]:
        """The caller's own settings of a queue do not count here: only what the benchmark was told."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PGQ_") and name != "QUEUE"}
        given: dict[str, Any] = {
            "DATABASE_URL": self._database.dsn,
            "PGQ_SCHEMA": SCHEMA,
            "PGQ_QUEUE": QUEUE,
            "XDG_CONFIG_HOME": str(home),
        }
        if self._concurrency is not None:
            given["PGQ_CONCURRENCY"] = str(self._concurrency)
        return kept | given | self._recording.environment(slot)

    def _wait_until_ready(self) -> None:
        statement = self._database.statements.count_ready_workers()
        for _ in self._attempts():
            if statement.fetch_one_sync(self._database.conn) == self._workers:
                self._runners = [child for keeper in self._keepers for child in children_of(keeper.pid)]
                return
        raise BenchFailed(f"the workers were not ready within {READY_SECONDS:g} s: {self._last_words(0)}")

    def _attempts(self) -> Iterator[None]:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            self.check()
            yield
            time.sleep(_POLL)

    def _last_words(self, slot: int) -> str:
        log = self._logs[slot]
        log.flush()
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_WORDS))
        return log.read().decode(errors="replace").strip() or "it said nothing"


def busiest_share(shares: Sequence[int]) -> float:
    """How much of all jobs the busiest of several workers ran.

    >>> busiest_share([30, 70]), busiest_share([0, 0])
    (0.7, 0.0)
    """
    total = sum(shares)
    return max(shares) / total if total else 0.0
