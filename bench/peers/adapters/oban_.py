"""oban (Python): one producer a queue, psycopg pool, acks in a transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import oban_ as itself  # workers name their class by module path
import uvloop
from oban import Oban, worker
from oban.schema import install
from peer import Peer, Put, Recorder, main

recorder: Recorder | None = None


@worker(queue="bench")
class Noop:
    async def process(self, job) -> None:
        recorder.hit(job.args["n"])


class ObanPeer(Peer):
    packages = ["oban", "psycopg", "uvloop"]
    options = {"limit": 1000, "pool": 10, "chunk": 1000, "uvloop": True}
    scale = 0.75
    audit = "finished row kept in the jobs table"
    unfinished_sql = (
        "SELECT EXISTS (SELECT 1 FROM oban_jobs WHERE state IN ('available', 'executing', 'scheduled', 'retryable'))"
    )
    notes = "logger at ERROR"

    async def setup(self) -> None:
        pool = await self._pool(2)
        await install(pool)
        await pool.close()

    async def open_producer(self) -> Put:
        self.pool = await self._pool(1)
        self.oban = Oban(pool=self.pool)

        async def put(number: int) -> None:
            await self.oban.enqueue(Noop.new({"n": number}))

        return put

    async def close_producer(self) -> None:
        await self.pool.close()

    async def open_bulk(self) -> None:
        await self.open_producer()

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            await self.oban.enqueue_many([Noop.new({"n": number}) for number in numbers])

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        itself.recorder = recorder
        run = uvloop.run if self.opt["uvloop"] else asyncio.run
        run(self._work(ready))

    async def _work(self, ready: Callable[[], None]) -> None:
        oban = Oban(pool=await self._pool(self.opt["pool"]), queues={"bench": self.opt["limit"]})
        ready()
        await oban.start()
        await asyncio.Event().wait()

    async def _pool(self, largest: int):
        logging.getLogger("oban").setLevel(logging.ERROR)
        return await Oban.create_pool(self.dsn, min_size=1, max_size=largest)


if __name__ == "__main__":
    main(itself.ObanPeer)
