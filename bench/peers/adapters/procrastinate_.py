"""procrastinate: asynchronous worker on a psycopg pool, batch_defer for bulk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import procrastinate
from peer import Peer, Put, Recorder, main


class Procrastinate(Peer):
    packages = ["procrastinate", "psycopg"]
    options = {"concurrency": 50, "pool": 10, "chunk": 1000, "delete_jobs": "never"}
    scale = 0.15
    audit = "three event rows a job (deferred, started, succeeded), by trigger"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
    notes = "one fetch call and one finish call a job; logger at ERROR"

    async def setup(self) -> None:
        app, _ = self._app()
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open_producer(self) -> Put:
        self.app, noop = self._app()
        await self.app.open_async()

        async def put(number: int) -> None:
            await noop.defer_async(n=number)

        return put

    async def close_producer(self) -> None:
        await self.app.close_async()

    async def open_bulk(self) -> None:
        self.app, self.noop = self._app()
        await self.app.open_async()

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            await self.noop.batch_defer_async(*[{"n": number} for number in numbers])

    def work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        asyncio.run(self._work(recorder, ready))

    async def _work(self, recorder: Recorder, ready: Callable[[], None]) -> None:
        app, _ = self._app(2, self.opt["pool"], recorder)
        async with app.open_async():
            ready()
            await app.run_worker_async(
                queues=["bench"],
                concurrency=self.opt["concurrency"],
                delete_jobs=self.opt["delete_jobs"],
                install_signal_handlers=False,
            )

    def _app(self, smallest: int = 1, largest: int = 1, recorder: Recorder | None = None):
        logging.getLogger("procrastinate").setLevel(logging.ERROR)
        connector = procrastinate.PsycopgConnector(conninfo=self.dsn, min_size=smallest, max_size=largest)
        app = procrastinate.App(connector=connector)

        @app.task(name="noop", queue="bench")
        async def noop(n: int) -> None:
            recorder.hit(n)

        return app, noop


if __name__ == "__main__":
    main(Procrastinate)
