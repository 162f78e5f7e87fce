"""A producer process: enqueues each batch at a time fixed in advance, or late, but never leaves one out.

Run as `python -m tests.torture.producer`. Its orders come as one line of JSON on stdin, then the time to start at.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import IO, Any

from pgq_core.bench.schedule import Schedule
from pgq_core.errors import JobNotFound
from pgq_core.job_queue import JobQueue, JobRequest

READY = "ready\n"


@dataclass(frozen=True, slots=True)
class Orders:
    dsn: str
    job_type: str
    data: Any
    rate: float
    """Of all producers together."""
    seconds: float
    number: int
    producers: int
    notes: str
    """File for a line per batch: when its commit was answered, how late it was sent, the ids."""

    def encode(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def produce(orders: Orders, queue: JobQueue, started_at: float, notes: IO[str]) -> None:
    """`started_at`: on the monotonic clock."""
    random = Random(orders.number)
    schedule = Schedule(orders.rate, orders.seconds)
    for batch in schedule.batches(producer=orders.number, producers=orders.producers):
        due_at = started_at + batch.at
        while (left := due_at - time.monotonic()) > 0:
            time.sleep(left)
        late = time.monotonic() - due_at
        requests = [
            JobRequest(orders.job_type, orders.data, priority=random.randint(0, 2))
            for _ in range(batch.first, batch.stop)
        ]
        ids = [job.id for job in queue.enqueue_many(requests)]
        notes.write(f"{time.time():.6f}\t{late:.6f}\t{' '.join(map(str, ids))}\n")


def main() -> None:
    orders = Orders(**json.loads(sys.stdin.readline()))
    with JobQueue(orders.dsn) as queue, Path(orders.notes).open("w") as notes:
        with contextlib.suppress(JobNotFound):  # opens the connection
            queue.get(0)
        sys.stdout.write(READY)
        sys.stdout.flush()
        if line := sys.stdin.readline():
            produce(orders, queue, float(line), notes)


if __name__ == "__main__":
    main()
