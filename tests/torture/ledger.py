"""The effects ledger: an append-only file that jobs write themselves, independent of every table of the queue."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

LEDGER_VARIABLE = "TORTURE_LEDGER"
PIECE = 1024 * 1024

_descriptors: dict[tuple[int, str], int] = {}


def note(path: str, event: str, job_id: int, attempt: int, worker_id: str) -> None:
    """One line, in one write to a file opened for appending: processes may be killed between lines, never in one."""
    key = (os.getpid(), path)  # a forked child opens its own
    if key not in _descriptors:
        _descriptors[key] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(_descriptors[key], f"{time.time():.6f}\t{event}\t{job_id}\t{attempt}\t{worker_id}\t{key[0]}\n".encode())


@dataclass(frozen=True, slots=True)
class Entry:
    at: float
    event: str
    job_id: int
    attempt: int
    worker_id: str
    pid: int


class Ledger:
    """Read by the test, and laid beside the queue's tables for the questions that need both."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(mode=0o666)

    def entries(self, event: str | None = None) -> Iterator[Entry]:
        with self.path.open() as lines:
            for line in lines:
                at, what, job_id, attempt, worker_id, pid = line.rstrip("\n").split("\t")
                if event in {None, what}:
                    yield Entry(float(at), what, int(job_id), int(attempt), worker_id, int(pid))

    def store(self, conn: psycopg.Connection[Any]) -> None:
        """Everything noted so far, as `torture.ledger`, whose columns are in the order of a line."""
        conn.execute("TRUNCATE torture.ledger")
        with self.path.open("rb") as lines, conn.cursor().copy("COPY torture.ledger FROM STDIN") as copy:
            while piece := lines.read(PIECE):
                copy.write(piece)
