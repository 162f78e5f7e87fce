"""Kills for minutes: nothing is lost, nothing runs twice to a good end, never too many workers."""

from __future__ import annotations

import os
import signal
import time
from random import Random

import pytest

from tests.supervisor.support import PATIENCE, Host, all_gone, pool
from tests.support.waiting import eventually

pytestmark = [pytest.mark.torture, pytest.mark.system]

BEATS = {"heartbeat": 0.1, "stale_limit": 2.0, "reaper_interval": 0.1, "grace": 2.0}
JOBS = 3000
WORKERS = 4
SECONDS = 40.0


def until_drained(host: Host) -> None:
    eventually(lambda: not host.rows("SELECT 1 AS one FROM jobs LIMIT 1"), timeout=240.0, interval=0.2)


def assert_each_job_succeeded_once(host: Host, count: int) -> None:
    good = host.rows("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM job_runs WHERE outcome = 'succeeded'")
    dead = host.rows("SELECT count(*) AS n FROM dead_letter_jobs")[0]["n"]
    assert good == [{"n": count - dead, "jobs": count - dead}]
    assert host.rows("SELECT 1 AS one FROM job_runs WHERE finished_at IS NULL") == []


def test_killed_workers_lose_nothing_and_are_replaced(host: Host) -> None:
    random = Random(1)
    host.supervise(pool(wanted=WORKERS, concurrency=5), **BEATS)
    host.until_running(WORKERS)
    host.enqueue("sleep", {"seconds": 0.03}, count=JOBS, max_attempts=50)
    deadline = time.monotonic() + SECONDS

    while time.monotonic() < deadline and host.rows("SELECT 1 AS one FROM jobs LIMIT 1"):
        if workers := host.workers():
            os.kill(random.choice(workers)["pid"], signal.SIGKILL)
        time.sleep(2.0)
    until_drained(host)

    host.until_running(WORKERS)
    assert_each_job_succeeded_once(host, JOBS)


def test_killed_supervisors_lose_nothing_and_never_have_too_many_workers(host: Host) -> None:
    host.enqueue("sleep", {"seconds": 0.05}, count=JOBS, max_attempts=50)
    most = 0
    for _ in range(8):
        supervisor = host.supervise(pool(wanted=WORKERS, concurrency=5), **BEATS)
        deadline = time.monotonic() + 4.0
        while time.monotonic() < deadline:
            most = max(most, len(host.workers("starting", "running", "draining")))
            time.sleep(0.1)
        supervisor.process.kill()
        supervisor.wait(10)
    pids = [row["pid"] for row in host.rows("SELECT pid FROM workers WHERE pid IS NOT NULL")]
    eventually(lambda: all_gone(pids), timeout=PATIENCE)

    host.supervise(pool(wanted=WORKERS, concurrency=5), **BEATS)
    until_drained(host)

    assert most <= WORKERS
    assert_each_job_succeeded_once(host, JOBS)
