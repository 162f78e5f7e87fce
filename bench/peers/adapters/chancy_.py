"""chancy: asynchronous executor, eager polling, outgoing updates in batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import chancy_ as itself  # jobs name their function by module path
from chancy import Chancy, Queue, Worker, job
from peer import Peer, Put, Recorder, main

recorder: Recorder | None = None


@job(queue="bench")
async def noop(*, n: int) -> None:
    recorder.hit(n)


class ChancyPeer(Peer):
    packages = ["chancy", "psycopg"]
    options = {"concurrency": 1000, "pool": 10, "chunk": 1000, "eager": True}
    scale = 0.75
    audit = "finished row kept in the jobs table"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM chancy_jobs WHERE state IN ('pending', 'retrying', 'running'))"
    notes = "completions are flushed once a second, up to 1000 updates a transaction; logger at ERROR"

    async def setup(self) -> None:
        async with self._app() as app:
            await app.migrate()
            await app.declare(self._queue(), upsert=True)

    async def open_producer(self) -> Put:
        self.app = self._app()
        await self.app.__aenter__()

        async def put(number: int) -> None:
            await self.app.push(noop.job.with_kwargs(n=number))

        return put

    async def close_producer(self) -> None:
        await self.app.__aexit__(None, None, None)

    async def open_bulk(self) -> None:
        await self.open_producer()

    async def bulk(self, jobs: int) -> None:
        made = [noop.job.with_kwargs(n=number) for number in range(jobs)]
        async for _ in self.app.push_many(made, batch_size=self.opt["chunk"]):
            pass

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        itself.recorder = recorder
        asyncio.run(self._work(ready))

    async def _work(self, ready: Callable[[], None]) -> None:
        async with self._app() as app:
            await app.declare(self._queue(), upsert=True)
            ready()
            async with Worker(app, register_signal_handlers=False) as worker:
                await worker.wait_for_shutdown()

    def _app(self) -> Chancy:
        log = logging.getLogger("chancy-bench")
        log.setLevel(logging.ERROR)
        return Chancy(self.dsn, max_connection_pool_size=self.opt["pool"], log=log)

    def _queue(self) -> Queue:
        return Queue(
            "bench",
            concurrency=self.opt["concurrency"],
            executor=Chancy.Executor.Async,
            eager_polling=self.opt["eager"],
        )


if __name__ == "__main__":
    main(itself.ChancyPeer)
