"""This project as its users have it: JobQueue for producers, the keeper and runner of `pgq-core worker` for work."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
from ours_handlers import NOOP, NOOP_IN_A_THREAD, SLOT_VARIABLE
from peer import Peer, Put, Recorder, main

from pgq_core import JobQueue
from pgq_core.maintenance import Maintenance
from pgq_core.migrate import migrate
from pgq_core.settings import load_settings
from pgq_core.worker import WorkerOptions, run_worker

HANDLERS = str(Path(__file__).with_name("ours_handlers.py"))
QUEUE = "default"


class Ours(Peer):
    packages = ["pgq-tui", "psycopg"]
    options = {"concurrency": 10, "chunk": 5000, "threads": False}
    scale = 5.0
    audit = "one row a run, written with its completion"
    unfinished_sql = "SELECT EXISTS (SELECT 1 FROM pgq_core.jobs)"
    notes = "default settings, default logging, maintenance in the worker; CPU counts the keeper and the runner"
    single_jobs = 3000

    @property
    def job_type(self) -> str:
        return NOOP_IN_A_THREAD if self.opt["threads"] else NOOP

    async def setup(self) -> None:
        migrate(self.dsn)

    async def open_producer(self) -> Put:
        self.queue = JobQueue(self.dsn)

        async def put(number: int) -> None:
            self.queue.enqueue(self.job_type, {"n": number})

        return put

    async def close_producer(self) -> None:
        self.queue.close()

    async def open_bulk(self) -> None:
        self.queue = JobQueue(self.dsn)
        with psycopg.connect(self.dsn):
            self.queue.enqueue_many([])

    async def bulk(self, jobs: int) -> None:
        for first in range(0, jobs, self.opt["chunk"]):
            numbers = range(first, min(jobs, first + self.opt["chunk"]))
            self.queue.enqueue_many([(self.job_type, {"n": number}) for number in numbers])
        self.queue.close()

    def work(self, _: Recorder, ready: Callable[[], None]) -> None:
        """The runner imports its modules before the start counts, as other peers do: the queue is paused until then."""
        path, slot, with_stamps = self.slot
        os.environ[SLOT_VARIABLE] = f"{path}:{slot}:{int(with_stamps)}"
        settings = load_settings(dsn=self.dsn, db_schema="pgq_core", concurrency=self.opt["concurrency"])
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute("SELECT pgq_core.pause(%s)", (QUEUE,))
        threading.Thread(target=self._open_when_ready, args=(ready,), daemon=True).start()
        options = WorkerOptions(settings=settings, apps=(HANDLERS,))
        sys.exit(run_worker(options, services=[Maintenance(settings)]))

    def _open_when_ready(self, ready: Callable[[], None]) -> None:
        with psycopg.connect(self.dsn, autocommit=True, application_name="bench-run") as conn:
            while not self._has_a_ready_runner(conn):
                time.sleep(0.02)
            ready()
            conn.execute("SELECT pgq_core.resume(%s)", (QUEUE,))

    def _has_a_ready_runner(self, conn: psycopg.Connection) -> bool:
        own = [child.pid for child in psutil.Process().children()]
        statement = "SELECT EXISTS (SELECT FROM pgq_core.workers WHERE state = 'running' AND pid = ANY (%s))"
        return bool(conn.execute(statement, (own,)).fetchone()[0])


if __name__ == "__main__":
    main(Ours)
