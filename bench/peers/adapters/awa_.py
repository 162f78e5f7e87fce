"""awa: a Rust runtime behind a Python API; append-only storage, COPY for bulk, claims and completions in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from awa import AsyncClient
from peer import Peer, Put, Recorder, main


@dataclass
class Noop:
    n: int


class AwaPeer(Peer):
    packages = ["awa-pg"]
    options = {"max_workers": 1024, "claim_batch_size": 512, "pool": 10, "chunk": 5000}
    scale = 1.5
    audit = "terminal history kept compactly, one array row a batch"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM awa.jobs WHERE state NOT IN ('completed', 'failed', 'cancelled'))"
    notes = "max_workers and claim_batch_size are its own values for a load of no-ops"

    async def setup(self) -> None:
        client = self._client()
        await client.migrate()
        await client.install_queue_storage()
        await client.close()

    async def open_producer(self) -> Put:
        self.client = AsyncClient(self.dsn, max_connections=1)

        async def put(number: int) -> None:
            await self.client.insert(Noop(number), queue="bench")

        return put

    async def open_bulk(self) -> None:
        self.client = AsyncClient(self.dsn, max_connections=1)
        await self.client.queue_stats()

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            await self.client.enqueue_many_copy([Noop(number) for number in numbers], queue="bench")

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        asyncio.run(self._work(recorder, ready))

    async def _work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        client = self._client()

        @client.task(Noop, queue="bench")
        async def noop(job) -> None:
            recorder.hit(job.args.n)

        await client.queue_stats()
        ready()
        queue = {
            "name": "bench",
            "max_workers": self.opt["max_workers"],
            "claim_batch_size": self.opt["claim_batch_size"],
        }
        await client.start([queue])
        await asyncio.Event().wait()

    def _client(self) -> AsyncClient:
        return AsyncClient(self.dsn, max_connections=self.opt["pool"])


if __name__ == "__main__":
    main(AwaPeer)
