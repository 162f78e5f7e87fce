"""What is wanted: enqueues two jobs. Run it twice: the key is taken, so the second time the email has the same id."""

from __future__ import annotations

import os

from pgq_core import JobQueue


def main() -> None:
    with JobQueue(os.environ["DATABASE_URL"], schema=os.environ.get("PGQ_SCHEMA", "public")) as queue:
        email = queue.enqueue(
            "send_email",
            {"to": "a@example.org", "subject": "Welcome!"},
            idempotency_key="welcome-12345",
        )
        print("email", email.id, "new" if email.created else "known")
        image = queue.enqueue("resize_image", {"src": "s3://bucket/a.jpg", "dst": "s3://bucket/a-512.jpg"})
        print("image", image.id, "new" if image.created else "known")


if __name__ == "__main__":
    main()
