"""Three jobs that always fail, and one that does not. The three end as dead letters: `pgq-core dead list`."""

from __future__ import annotations

import os

from pgq_core import JobQueue


def main() -> None:
    with JobQueue(os.environ["DATABASE_URL"], schema=os.environ.get("PGQ_SCHEMA", "public")) as queue:
        for i in range(3):
            job = queue.enqueue("flaky", {"i": i}, idempotency_key=f"flaky-{i}", max_attempts=3)
            print("flaky", job.id)
        job = queue.enqueue("send_email", {"to": "a@example.org", "subject": "hi"})
        print("email", job.id)


if __name__ == "__main__":
    main()
