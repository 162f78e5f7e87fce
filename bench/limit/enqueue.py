#!/usr/bin/env python3
"""What plain psycopg reaches on this server: ways to get jobs in on one connection, and how soon a NOTIFY arrives.

    .venv/bin/python bench/limit/enqueue.py --dsn postgresql://... [--rounds 3] [--jobs 100000]

Its tables jobs and job_runs are dropped and made in that database: give it a scratch one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg

from pgq_core.bench.figures import Spread, percentile

SCHEMA = Path(__file__).with_name("schema.sql").read_text()
INSERT = "INSERT INTO jobs (payload) VALUES (%s::jsonb)"
UNNEST = "INSERT INTO jobs (payload) SELECT payload::jsonb FROM unnest(%s::text[]) AS payload"
NOTIFY = "SELECT pg_notify('floor', %s)"
INSERT_AND_NOTIFY = (
    "WITH inserted AS (INSERT INTO jobs (payload) VALUES ('{}') RETURNING id) "
    "SELECT pg_notify('floor', %s) FROM inserted"
)
MESSAGES = 150
INTERVAL = 0.05
WARM_UP = 5

Way = Callable[[psycopg.Connection, Sequence[str]], None]


def one_by_one(conn: psycopg.Connection, payloads: Sequence[str]) -> None:
    for payload in payloads:
        conn.execute(INSERT, (payload,))


def by_executemany(conn: psycopg.Connection, payloads: Sequence[str]) -> None:
    for chunk in _chunks(payloads, 1000):
        with conn.transaction(), conn.cursor() as cursor:
            cursor.executemany(INSERT, [(payload,) for payload in chunk])


def by_unnest(conn: psycopg.Connection, payloads: Sequence[str]) -> None:
    for chunk in _chunks(payloads, 1000):
        conn.execute(UNNEST, (list(chunk),))


def by_unnest_with_ids(conn: psycopg.Connection, payloads: Sequence[str]) -> None:
    for chunk in _chunks(payloads, 1000):
        conn.execute(f"{UNNEST} RETURNING id", (list(chunk),)).fetchall()


def by_copy(conn: psycopg.Connection, payloads: Sequence[str]) -> None:
    for chunk in _chunks(payloads, 10_000):
        with conn.cursor().copy("COPY jobs (payload) FROM STDIN") as copy:
            for payload in chunk:
                copy.write_row((payload,))


WAYS: dict[str, tuple[Way, int]] = {
    "one by one": (one_by_one, 30),
    "executemany, 1000 a transaction": (by_executemany, 4),
    "unnest, 1000 a statement": (by_unnest, 1),
    "unnest, 1000 a statement, ids returned": (by_unnest_with_ids, 1),
    "COPY, 10000 a statement": (by_copy, 1),
}
"""Each with the part of `--jobs` it gets: one nth."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=100_000)
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for name, (way, part) in WAYS.items():
            found.setdefault(f"{name}, jobs/s", []).append(rate(args.dsn, way, args.jobs // part))
        for name, statement in (("NOTIFY", NOTIFY), ("insert and NOTIFY", INSERT_AND_NOTIFY)):
            for share, milliseconds in arrivals(args.dsn, statement).items():
                found.setdefault(f"{name}, call to arrival, p{share}, ms", []).append(milliseconds)
    for name, values in found.items():
        print(f"{name}\t{Spread.of(values)}")


def rate(dsn: str, way: Way, jobs: int) -> float:
    payloads = [json.dumps({"n": number}) for number in range(jobs)]
    with _fresh(dsn) as conn:
        started_at = time.perf_counter()
        way(conn, payloads)
        return jobs / (time.perf_counter() - started_at)


def arrivals(dsn: str, statement: str) -> dict[int, float]:
    """Milliseconds from a call in this process to its arrival in another, by percentile."""
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.SimpleQueue()
    listener = context.Process(target=_listen, args=(dsn, barrier, answers))
    sent = []
    with _fresh(dsn) as conn:
        listener.start()
        barrier.wait()
        for number in range(MESSAGES):
            time.sleep(INTERVAL)
            sent.append(time.monotonic())
            conn.execute(statement, (str(number),))
    heard = answers.get()
    listener.join()
    waits = sorted((heard[number] - sent[number]) * 1000 for number in range(WARM_UP, MESSAGES))
    return {share: percentile(waits, share / 100) for share in (50, 95, 99)}


def _listen(dsn: str, barrier: Barrier, answers: multiprocessing.SimpleQueue) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("LISTEN floor")
        barrier.wait()
        heard: dict[int, float] = {}
        for notification in conn.notifies(stop_after=MESSAGES):
            heard[int(notification.payload)] = time.monotonic()
        answers.put(heard)


def _fresh(dsn: str) -> psycopg.Connection:
    conn = psycopg.connect(dsn, autocommit=True)
    conn.execute(SCHEMA)
    conn.execute("CHECKPOINT")
    conn.prepare_threshold = 0
    return conn


def _chunks(payloads: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(payloads), size):
        yield payloads[first : first + size]


if __name__ == "__main__":
    main()
