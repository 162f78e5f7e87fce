"""The floor: a hand-written loop on bare psycopg, with one audit row a job and every write guarded by its worker.

Claims run ahead of the handlers on one connection, completions behind them on another, in batches of 500. It is no
queue: no retry, no rescue, no wake-up, no statistics, one queue, a handler that cannot fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from peer import Peer, Put, Recorder, main

SCHEMA = Path(__file__).parents[2] / "limit" / "schema.sql"
INSERT = "INSERT INTO jobs (payload) VALUES (%s::jsonb)"
INSERT_MANY = "INSERT INTO jobs (payload) SELECT payload::jsonb FROM unnest(%s::text[]) AS payload RETURNING id"
CLAIM = """
WITH claimable AS (
    SELECT id FROM jobs WHERE queue = 'default' AND state = 0 AND run_at <= now()
     ORDER BY priority, run_at, id LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE jobs SET state = 1, attempt = attempt + 1, worker_id = %s FROM claimable WHERE jobs.id = claimable.id
RETURNING jobs.id, attempt, kind, payload"""
COMPLETE = """
WITH ended AS (
    DELETE FROM jobs USING unnest(%s::bigint[], %s::float8[], %s::float8[]) AS run (id, started, finished)
     WHERE jobs.id = run.id AND jobs.worker_id = %s RETURNING jobs.id, attempt, worker_id, started, finished
)
INSERT INTO job_runs SELECT id, attempt, worker_id, 1, to_timestamp(started), to_timestamp(finished) FROM ended"""
IDLE = 0.005


class Bare(Peer):
    packages = ["psycopg"]
    options = {"batch": 500, "chunk": 1000}
    steps = ["single", "bulk", "drain"]
    scale = 5.0
    single_jobs = 3000
    audit = "one row a run, written with its completion"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM jobs)"
    notes = "no queue, but what hand-written Python can reach; not asked for pickup, since it only polls"

    async def setup(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as conn:
            await conn.execute(SCHEMA.read_text())

    async def open_producer(self) -> Put:
        self.conn = self._connect()

        async def put(number: int) -> None:
            self.conn.execute(INSERT, (json.dumps({"n": number}),))

        return put

    async def close_producer(self) -> None:
        self.conn.close()

    async def open_bulk(self) -> None:
        self.conn = self._connect()

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            self.conn.execute(INSERT_MANY, ([json.dumps({"n": number}) for number in numbers],)).fetchall()
        self.conn.close()

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        asyncio.run(self._work(recorder, ready))

    async def _work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        async def handle(payload: dict) -> None:
            recorder.hit(payload["n"])

        claims, completions = await self._worker_connection(), await self._worker_connection()
        await claims.execute("SET synchronous_commit = off")  # a lost claim means that the job is still there
        claimed: asyncio.Queue = asyncio.Queue(2)
        ended: asyncio.Queue = asyncio.Queue(2)
        ready()
        loops = [
            asyncio.create_task(self._claim(claims, claimed)),
            asyncio.create_task(self._complete(completions, ended)),
        ]
        while True:
            rows = await claimed.get()
            ids, started, finished = [], [], []
            for row in rows:
                ids.append(row[0])
                started.append(time.time())
                await handle(row[3])
                finished.append(time.time())
            await ended.put((ids, started, finished))
            for loop in loops:
                if loop.done():
                    loop.result()

    async def _claim(self, conn: psycopg.AsyncConnection, claimed: asyncio.Queue) -> None:
        while True:
            rows = await (await conn.execute(CLAIM, (self.opt["batch"], os.getpid()))).fetchall()
            if rows:
                await claimed.put(rows)
            else:
                await asyncio.sleep(IDLE)

    async def _complete(self, conn: psycopg.AsyncConnection, ended: asyncio.Queue) -> None:
        while True:
            await conn.execute(COMPLETE, (*await ended.get(), os.getpid()))

    def _connect(self) -> psycopg.Connection:
        conn = psycopg.connect(self.dsn, autocommit=True)
        conn.prepare_threshold = 0
        return conn

    async def _worker_connection(self) -> psycopg.AsyncConnection:
        conn = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
        conn.prepare_threshold = 0
        return conn


if __name__ == "__main__":
    main(Bare)
