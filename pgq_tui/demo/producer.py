"""A process of its own that enqueues what customers do, at their pace and not at the workers'.

Run as `python -m pgq_tui.demo.producer`. Standard input brings one line of JSON (dsn, schema); its end means that the
demo is over.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

from pgq_core.errors import DatabaseUnavailable
from pgq_core.job_queue import JobQueue, JobRequest
from pgq_tui.demo.customers import Customers

TICK = 0.25
LONGEST_TICK = 2.0
STDIN = 0


def main() -> int:
    told = json.loads(sys.stdin.readline())
    # Numbers that no earlier demo on this database has used.
    customers = Customers(first_number=int(time.time()) % 10_000_000 * 10)
    with JobQueue(told["dsn"], schema=told["schema"]) as queue:
        _enqueue(queue, customers.first_visit())
        started = before = time.monotonic()
        while not _is_over(TICK):
            now = time.monotonic()
            # A machine that slept is not flooded with what would have come meanwhile.
            _enqueue(queue, customers.jobs_between(max(before, now - LONGEST_TICK) - started, now - started))
            before = now
    return 0


def _enqueue(queue: JobQueue, jobs: list[JobRequest]) -> None:
    """An open loop: what cannot be enqueued now is lost business, as in a real shop; the next customers come anyway."""
    if jobs:
        try:
            queue.enqueue_many(jobs)
        except DatabaseUnavailable as error:
            print(error, file=sys.stderr, flush=True)  # noqa: T201 - the demo's own log


def _is_over(timeout: float) -> bool:
    readable, _, _ = select.select([STDIN], [], [], timeout)
    return bool(readable) and not os.read(STDIN, 4096)


if __name__ == "__main__":
    sys.exit(main())
