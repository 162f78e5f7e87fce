"""pgqueuer: asyncpg, one listening connection, batched dequeue, batched completion."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import timedelta

import asyncpg
import uvloop
from peer import Peer, Put, Recorder, main
from pgqueuer import AsyncpgDriver, Queries, QueueManager


class PgQueuer(Peer):
    packages = ["pgqueuer", "asyncpg", "uvloop"]
    options = {"batch_size": 1000, "chunk": 5000, "uvloop": True}
    scale = 2.0
    audit = "three log rows a job: queued, picked, successful"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM pgqueuer)"
    notes = "durable tables (its default); autovacuum settings of its own `autovac` command; logger at ERROR"

    async def setup(self) -> None:
        queries = await self._queries()
        await queries.install()
        await queries.optimize_autovacuum()

    async def open_producer(self) -> Put:
        queries = await self._queries()

        async def put(number: int) -> None:
            await queries.enqueue("noop", b'{"n": %d}' % number)

        return put

    async def open_bulk(self) -> None:
        self.queries = await self._queries()

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            payloads = [b'{"n": %d}' % number for number in numbers]
            await self.queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        run = uvloop.run if self.opt["uvloop"] else asyncio.run
        run(self._work(recorder, ready))

    async def _work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        manager = QueueManager(await self._queries())

        @manager.entrypoint("noop")
        async def noop(job) -> None:
            recorder.hit(json.loads(job.payload)["n"])

        ready()
        await manager.run(batch_size=self.opt["batch_size"], dequeue_timeout=timedelta(seconds=30))

    async def _queries(self) -> Queries:
        logging.getLogger("pgqueuer").setLevel(logging.ERROR)
        return Queries(AsyncpgDriver(await asyncpg.connect(self.dsn)))


if __name__ == "__main__":
    main(PgQueuer)
