"""A load from several producer processes that keep to one schedule, and what of it was really committed, and when."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgq_core.bench.schedule import Schedule
from tests.support.worker_process import ROOT
from tests.torture.producer import READY, Orders
from tests.torture.timeline import Timeline

PRODUCERS = 3
"""One cannot offer, at its time, what several workers can do."""
LEAD = 0.3
"""Seconds from the word to start until the first batch is due."""
PATIENCE = 120.0
SAMPLE_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Sent:
    """One batch. `committed_at`: when its producer knew; `late`: seconds behind its time when it was sent."""

    committed_at: float
    late: float
    ids: tuple[int, ...]


class Offering:
    """`started_at` and `ends_at`: seconds since the epoch, as in a timeline."""

    def __init__(self, schedule: Schedule, started_at: float, processes: Sequence[subprocess.Popen[str]]) -> None:
        self.schedule = schedule
        self.started_at = started_at
        self.ends_at = started_at + schedule.seconds
        self.sent: list[Sent] = []
        """Known at the end."""
        self._processes = processes

    def wait(self, notes: Sequence[Path]) -> None:
        """Until everything is sent, however late that is."""
        deadline = time.monotonic() + max(self.ends_at - time.time(), 0.0) + PATIENCE
        for process in self._processes:
            code = process.wait(max(deadline - time.monotonic(), 0.1))
            assert code == 0, f"a producer ended with code {code}; its words stand above"
        for path in notes:
            for line in path.read_text().splitlines():
                committed_at, late, ids = line.split("\t")
                self.sent.append(Sent(float(committed_at), float(late), tuple(map(int, ids.split()))))

    @property
    def ids(self) -> list[int]:
        return [job_id for sent in self.sent for job_id in sent.ids]

    @property
    def latest(self) -> float:
        """Seconds behind its time of the batch that was sent latest."""
        return max(sent.late for sent in self.sent)

    def timeline(self) -> Timeline:
        """Of the commits, a time for each job."""
        return Timeline(sent.committed_at for sent in self.sent for _ in sent.ids)

    def backlog(self, started: Timeline) -> tuple[tuple[float, float], ...]:
        """Jobs that were due by the schedule and had not started, by seconds since its start."""
        return tuple(
            (at, max(0.0, self.schedule.offered(at) - started.count(self.started_at, self.started_at + at)))
            for at in (number * SAMPLE_EVERY for number in range(int(self.schedule.seconds / SAMPLE_EVERY)))
        )


@contextlib.contextmanager
def offering(
    dsn: str, directory: Path, job_type: str, data: Any, schedule: Schedule, *, producers: int = PRODUCERS
) -> Iterator[Offering]:
    """The load runs while the context is open; its end waits until all is sent."""
    notes = [directory / f"producer-{number}" for number in range(producers)]
    processes: list[subprocess.Popen[str]] = []
    try:
        for number, path in enumerate(notes):
            orders = Orders(dsn, job_type, data, schedule.rate, schedule.seconds, number, producers, str(path))
            processes.append(_started(orders))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == READY, "a producer could not start; its words stand above"
        start = time.monotonic() + LEAD
        for process in processes:
            _tell(process, f"{start}\n")
        load = Offering(schedule, time.time() + start - time.monotonic(), processes)
        yield load
        load.wait(notes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _started(orders: Orders) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.torture.producer"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _tell(process, orders.encode())
    return process


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()
