"""A producer process of an open-loop load: enqueues each batch at its time, or late, but never leaves one out.

Run by the benchmark as `python -m pgq_core.bench.producer`. Its orders come as one line of JSON on stdin (a command
line would show the password), then the time to start at; its answer goes as one line of JSON to stdout.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.options import Work
from pgq_core.bench.schedule import Batch, Schedule
from pgq_core.errors import JobNotFound
from pgq_core.job_queue import JobQueue, JobRequest

PROGRAM = "pgq bench producer"
_ANSWER_SECONDS = 120.0
_READY = b"ready\n"


class Call(NamedTuple):
    """One call of a producer, in seconds of this machine's monotonic clock."""

    due_at: float
    called_at: float
    returned_at: float


@dataclass(frozen=True, slots=True)
class ProducerOrders:
    dsn: str
    schema: str
    queue: str
    work: Work
    schedule: Schedule
    number: int = 0
    """Which of several producers."""
    producers: int = 1
    first_job: int = 0
    """Added to the numbers of the schedule's jobs."""
    one_by_one: bool = False
    """One `enqueue` per job instead of one `enqueue_many` per batch."""
    due_later: float | None = None
    """Seconds between a job's time in the schedule and the time it becomes due."""
    clock_offset: float = 0.0
    """The database's clock less this machine's monotonic one."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> ProducerOrders:
        values = json.loads(line)
        return cls(**values | {"work": Work(**values["work"]), "schedule": Schedule(**values["schedule"])})


class ProducerProcess:
    """The benchmark's side: a producer that has connected and waits for its time."""

    def __init__(self, orders: ProducerOrders) -> None:
        command = [sys.executable, "-m", "pgq_core.bench.producer"]
        self._seconds = orders.schedule.seconds
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._write(orders.encode())
        if self._process.stdout is None or self._process.stdout.readline() != _READY:
            self.kill()
            raise BenchFailed("a producer could not start; its words stand above")

    def start_at(self, at: float) -> None:
        """`at`: on the monotonic clock."""
        self._write(json.dumps(at).encode() + b"\n")

    def calls(self) -> list[Call]:
        """Waits until it has sent everything."""
        try:
            output, _ = self._process.communicate(timeout=self._seconds + _ANSWER_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BenchFailed(f"a producer is more than {_ANSWER_SECONDS:g} s behind its schedule") from error
        if self._process.returncode != 0:
            raise BenchFailed(f"a producer ended with code {self._process.returncode}; its words stand above")
        return [Call(*call) for call in json.loads(output)]

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def _write(self, line: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it ended: the answer will say so
                self._process.stdin.write(line)
                self._process.stdin.flush()


def produce(orders: ProducerOrders, queue: JobQueue, started_at: float) -> list[Call]:
    """Sends everything the schedule holds for this producer."""
    send = _one_by_one if orders.one_by_one else _together
    calls: list[Call] = []
    for batch in orders.schedule.batches(producer=orders.number, producers=orders.producers):
        due_at = started_at + batch.at
        _sleep_until(due_at)
        send(orders, queue, batch, due_at, calls.append)
    return calls


def _one_by_one(
    orders: ProducerOrders, queue: JobQueue, batch: Batch, due_at: float, note: Callable[[Call], None]
) -> None:
    not_before = _not_before(orders, due_at)
    for number in range(batch.first, batch.stop):
        data = orders.work.data(orders.first_job + number)
        called_at = time.monotonic()
        queue.enqueue(orders.work.job_type, data, queue=orders.queue, not_before=not_before)
        note(Call(due_at, called_at, time.monotonic()))


def _together(
    orders: ProducerOrders, queue: JobQueue, batch: Batch, due_at: float, note: Callable[[Call], None]
) -> None:
    not_before = _not_before(orders, due_at)
    requests = [
        JobRequest(
            orders.work.job_type,
            orders.work.data(orders.first_job + number),
            queue=orders.queue,
            not_before=not_before,
        )
        for number in range(batch.first, batch.stop)
    ]
    called_at = time.monotonic()
    queue.enqueue_many(requests)
    note(Call(due_at, called_at, time.monotonic()))


def _not_before(orders: ProducerOrders, due_at: float) -> datetime | None:
    if orders.due_later is None:
        return None
    return datetime.fromtimestamp(due_at + orders.due_later + orders.clock_offset, tz=UTC)


def _sleep_until(at: float) -> None:
    while (left := at - time.monotonic()) > 0:
        time.sleep(left)


def main() -> None:
    orders = ProducerOrders.decode(sys.stdin.buffer.readline())
    with JobQueue(orders.dsn, schema=orders.schema, application_name=PROGRAM) as queue:
        with contextlib.suppress(JobNotFound):  # opens the connection
            queue.get(0)
        sys.stdout.buffer.write(_READY)
        sys.stdout.buffer.flush()
        if line := sys.stdin.buffer.readline():
            calls = produce(orders, queue, float(json.loads(line)))
            json.dump(calls, sys.stdout)


if __name__ == "__main__":
    main()
