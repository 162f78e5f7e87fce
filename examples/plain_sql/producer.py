"""A producer that knows PostgreSQL and nothing of this library: one INSERT. The second time the key answers nothing."""

from __future__ import annotations

import json
import os

import psycopg

INSERT = """
    INSERT INTO jobs (queue, payload, idempotency_key)
    VALUES (%s, %s, %s)
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING id
"""


def enqueue(job_type: str, data: dict[str, str], *, queue: str = "default", key: str | None = None) -> int | None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as conn:
        row = conn.execute(INSERT, (queue, json.dumps({"type": job_type, "data": data}), key)).fetchone()
    return row[0] if row else None


if __name__ == "__main__":
    for _ in range(2):
        print(enqueue("send_email", {"to": "b@example.org", "subject": "Hello"}, key="plain-1"))
