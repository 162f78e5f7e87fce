"""A script of jobs that end in every way, workers that are stopped and killed, and a database that goes away.

Afterwards every metric, of every process, says what `job_runs` says, and every retry has its line in the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from psycopg import sql

from pgq_core.job_queue import JobQueue
from tests.api.server import api_on
from tests.metrics.samples import Samples, samples
from tests.metrics.test_server import free_port
from tests.support.databases import database_dsn, database_name
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually
from tests.torture import form

ROOT = Path(__file__).parents[2]
KINDS = ("good",) * 8 + ("bad", "hopeless", "sleepy", "unwanted", "given up", "slow")
QUEUES = ("mails", "bills", "default")
OUTCOMES = ("succeeded", "retried", "dead", "lost", "released", "snoozed", "cancelled", "discarded", "expired")
FAST = {"PGQ_HEARTBEAT": "0.2", "PGQ_STALE_LIMIT": "2", "PGQ_REAPER_INTERVAL": "0.3", "PGQ_POLL": "0.1"}


@dataclass(frozen=True, slots=True)
class Script:
    jobs: int
    workers: int
    restarts: int
    workers_afterwards: int
    seconds: float
    """At least so long, the jobs spread over it."""
    outage: float


SECRET = "open sesame"
SHORT = Script(jobs=80, workers=2, restarts=1, workers_afterwards=1, seconds=0.0, outage=0.0)
SOAK = Script(
    jobs=form.count(10_000),
    workers=3,
    restarts=3,
    workers_afterwards=3,
    seconds=form.seconds(600.0),
    outage=form.seconds(8.0, 4.0),
)


class Worker:
    """`pgq-core worker` with metrics of its own and a log in a file."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self.port = free_port()
        self.log = directory / f"worker-{self.port}.log"
        options = ["--app", "tests.metrics.kinds", "--metrics-port", str(self.port)]
        options += ["--queue", ",".join(QUEUES)]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pgq_core.cli", "worker", *options],
                cwd=ROOT,
                env={
                    **os.environ,
                    **FAST,
                    "DATABASE_URL": dsn,
                    "PGQ_LOG_JOBS": "all",
                    "PGQ_LOG_LEVEL": "debug",
                    "PGQ_GRACE": "0.1",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0

    def kill(self) -> None:
        """Keeper and runner at once, as a host that loses power."""
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            for child in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self.process.wait(30)

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                parsed = json.loads(line)
                if parsed.get("event") == event:
                    found.append(parsed)
        return found


class Play:
    """The stage of one script."""

    def __init__(self, script: Script, database: QueueDatabase, directory: Path) -> None:
        self.script = script
        self.database = database
        self.directory = directory
        self.workers: list[Worker] = []
        self.stopped: list[Worker] = []
        self._rng = random.Random(5)

    def run(self) -> None:
        self._start_missing(self.script.workers)
        parts = self.script.restarts + 1
        for part in range(parts):
            self._enqueue(self.script.jobs // parts, over=self.script.seconds / parts)
            self.database.run(
                "SELECT cancel(id) FROM jobs WHERE status = 'scheduled' AND attempts = 0 AND queue = 'later'"
            )
            if self.script.outage and part == 1:
                self._take_the_database_away(self.script.outage)
            if part < self.script.restarts:
                self._restart()
        eventually(self._is_done, timeout=150, interval=0.2)

    def end(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.stopped += self.workers
        self.workers = []

    def abandon(self) -> None:
        for worker in self.workers:
            worker.kill()

    def _enqueue(self, number: int, *, over: float) -> None:
        began_at = time.monotonic()
        chunks = max(1, int(over))
        with JobQueue(self.database.dsn) as queue:
            queue.enqueue("good", {"n": 0}, queue="later", delay=3600)
            for chunk in range(chunks):
                for n in range(number * chunk // chunks, number * (chunk + 1) // chunks):
                    queue.enqueue(self._rng.choice(KINDS), {"n": n, "password": SECRET}, queue=self._rng.choice(QUEUES))
                ahead = over * (chunk + 1) / chunks - (time.monotonic() - began_at)
                time.sleep(max(0.0, ahead))

    def _restart(self) -> None:
        """One worker is stopped in the middle of its jobs, one is killed, and others take their places."""
        eventually(self._two_have_long_jobs, timeout=120, interval=0.05)
        stopping = self.workers.pop(0)
        self.workers.pop(0).kill()
        stopping.stop()
        self.stopped.append(stopping)
        self._start_missing(self.script.workers_afterwards)

    def _two_have_long_jobs(self) -> bool:
        """New ones come until they do: who is ready first would else have done all before the others are."""
        if self.database.value("SELECT count(*) < 8 FROM jobs WHERE job_type = 'long'"):
            self.database.run(
                "INSERT INTO jobs (queue, payload, priority) "
                "SELECT 'mails', '{\"type\": \"long\"}', 9 FROM generate_series(1, 16)"
            )
        holders = "SELECT count(DISTINCT locked_by) FROM jobs WHERE job_type = 'long' AND status = 'running'"
        return bool(self.database.value(holders) >= 2)

    def _start_missing(self, wanted: int) -> None:
        while len(self.workers) < wanted:
            self.workers.append(Worker(self.database.dsn, self.directory))
        eventually(lambda: all(worker.lines("worker_ready") for worker in self.workers), timeout=90, interval=0.1)

    def _take_the_database_away(self, seconds: float) -> None:
        name = sql.Identifier(database_name(self.database.dsn))
        with psycopg.connect(database_dsn(self.database.dsn, "postgres"), autocommit=True) as server:
            server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
            try:
                ends_at = time.monotonic() + seconds
                while time.monotonic() < ends_at:
                    server.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s",
                        (database_name(self.database.dsn), self.database.connection().info.backend_pid),
                    )
                    time.sleep(0.2)
            finally:
                server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))

    def _is_done(self) -> bool:
        return bool(self.database.value("SELECT count(*) = 0 FROM jobs WHERE queue <> 'later'"))


@pytest.fixture
def play_of(database: QueueDatabase, tmp_path: Path) -> Iterator[Any]:
    plays: list[Play] = []

    def made(script: Script) -> Play:
        plays.append(Play(script, database, tmp_path))
        return plays[-1]

    yield made
    for play in plays:
        play.abandon()


@pytest.mark.slow
@pytest.mark.system
def test_after_a_script_every_metric_is_what_job_runs_says(
    play_of: Any, database: QueueDatabase, tmp_path: Path
) -> None:
    check(play_of(SHORT), database, [])


@pytest.mark.torture
@pytest.mark.timeout(1500)
def test_after_a_soak_with_restarts_and_an_outage_every_metric_is_what_job_runs_says(
    play_of: Any, database: QueueDatabase, tmp_path: Path
) -> None:
    with api_on(database.dsn, tmp_path) as first, api_on(database.dsn, tmp_path) as second:
        play = play_of(SOAK)
        check(play, database, [f"{first.url}/metrics", f"{second.url}/metrics"])
        first.stop()
        with api_on(database.dsn, tmp_path) as third:
            expect(database, f"{third.url}/metrics")


def check(play: Play, database: QueueDatabase, addresses: list[str]) -> None:
    play.run()

    counted = counts(database)
    assert {outcome for _, outcome in counted} >= {"succeeded", "retried", "dead", "snoozed", "cancelled", "discarded"}
    assert sum(counted.get((queue, "lost"), 0) + counted.get((queue, "released"), 0) for queue in QUEUES) > 0
    for address in [*addresses, *(worker.metrics_url for worker in play.workers)]:
        expect(database, address)
    play.end()
    assert_every_retry_has_its_line(play, database)


def expect(database: QueueDatabase, address: str) -> None:
    """A run that its worker could write down only late is counted by the others within a minute."""
    eventually(lambda: not differences(database, scraped(address)), timeout=120, interval=0.5)


def scraped(address: str) -> Samples:
    try:
        return samples(httpx.get(address, verify=False, timeout=30).text)
    except httpx.TransportError:
        return {}


def counts(database: QueueDatabase) -> dict[tuple[str, str], int]:
    rows = database.all("SELECT queue, outcome, count(*) AS n FROM job_runs GROUP BY queue, outcome")
    return {(row["queue"], row["outcome"]): row["n"] for row in rows}


def differences(database: QueueDatabase, found: Samples) -> list[str]:
    expected = counts(database)
    rows = database.all("SELECT queue, count(*) AS n FROM job_runs WHERE attempt > 0 GROUP BY queue")
    ran = {row["queue"]: row["n"] for row in rows}
    rows = database.all("SELECT queue, count(*) AS n FROM dead_letter_jobs GROUP BY queue")
    dead = {row["queue"]: row["n"] for row in rows}
    wrong = []

    def compare(name: str, wanted: int, **labels: str) -> None:
        given = found.get((name, frozenset(labels.items())))
        if given != wanted:
            wrong.append(f"{name}{labels}: {given} for {wanted}")

    for queue in QUEUES:
        for outcome in OUTCOMES:
            compare("jobs_processed_total", expected.get((queue, outcome), 0), queue=queue, result=outcome)
        compare("job_duration_seconds_count", ran.get(queue, 0), queue=queue)
        compare("dead_letter_total", dead.get(queue, 0), queue=queue)
        compare("jobs_reaped_total", expected.get((queue, "lost"), 0), queue=queue)
    compare("late_writes_refused_total", database.value("SELECT coalesce(sum(late_writes), 0)::int FROM workers"))
    return wrong


def assert_every_retry_has_its_line(play: Play, database: QueueDatabase) -> None:
    """Of the workers that ended in peace: what a killed one had not yet written is lost with it."""
    workers: set[str] = set()
    said: dict[tuple[int, int], dict[str, Any]] = {}
    for worker in play.stopped:
        workers |= {line["worker_id"] for line in worker.lines("worker_ready")}
        said |= {(line["job_id"], line["attempt"]): line for line in worker.lines("job_retried")}
        assert SECRET not in worker.log.read_text(errors="replace")
    runs = database.all(
        "SELECT job_id, attempt, error, queue, job_type FROM job_runs "
        "WHERE outcome = 'retried' AND worker_id = ANY(%s)",
        list(workers),
    )

    assert runs
    for run in runs:
        line = said[run["job_id"], run["attempt"]]
        assert line["error"] == run["error"]
        assert line["error_class"] == "ValueError"
        assert datetime.fromisoformat(line["retry_at"]).tzinfo is not None
        assert (line["queue"], line["job_type"]) == (run["queue"], run["job_type"])
        assert line["duration_ms"] >= 0
