"""The three tables in their first, smaller form, and what programs that were written for them do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.schema.sessions import Row, Session

FIRST_FORM = (Path(__file__).parent / "first_form.sql").read_text(encoding="utf-8")


def enqueue(conn: Session, job_type: str, data: Any, key: str | None = None) -> int:
    """A producer that knows only the plain INSERT: an id, or -1 for a key that is taken."""
    found = conn.execute(
        """INSERT INTO jobs (queue, payload, idempotency_key)
           VALUES (%s, %s, %s)
           ON CONFLICT (idempotency_key) DO NOTHING
           RETURNING id""",
        ("default", json.dumps({"type": job_type, "data": data}), key),
    ).fetchone()
    return found["id"] if found else -1


def claim(conn: Session, worker: str, queue: str = "default") -> Row | None:
    """The claim of a first-form worker."""
    return conn.execute(
        """UPDATE jobs
              SET locked_by = %s, locked_at = now()
            WHERE id = (SELECT id FROM jobs
                         WHERE queue = %s AND locked_by IS NULL AND not_before <= now()
                         ORDER BY not_before FOR UPDATE SKIP LOCKED LIMIT 1)
           RETURNING *""",
        (worker, queue),
    ).fetchone()
