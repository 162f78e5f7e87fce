"""Questions that must have no answer, whatever happened: one file each, all asked in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

DIRECTORY = Path(__file__).with_name("invariants")
NAMES = tuple(sorted(path.stem for path in DIRECTORY.glob("*.sql")))
SHOWN = 5

TABLES = """
CREATE SCHEMA torture;
CREATE TABLE torture.accepted (job_id bigint);
CREATE TABLE torture.ledger (at double precision, event text, job_id bigint, attempt int, worker_id text, pid int);
"""
"""What the questions compare the queue's tables with."""


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    count: int
    examples: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.invariant}: {self.count}, such as {', '.join(str(dict(row)) for row in self.examples)}"


def violations(
    conn: psycopg.Connection[dict[str, Any]], *, patience: float, names: tuple[str, ...] = NAMES
) -> list[Violation]:
    """`patience`: seconds after which a job of a dead worker must have been taken back."""
    found = []
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name in names:
            rows = conn.execute((DIRECTORY / f"{name}.sql").read_bytes(), {"patience": patience}).fetchall()
            if rows:
                found.append(Violation(name, len(rows), tuple(rows[:SHOWN])))
    return found
