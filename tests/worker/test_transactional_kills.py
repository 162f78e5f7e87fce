"""A handler in the job's own transaction, its worker killed at random moments: its work is there once, never twice."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers
from tests.torture.form import count

pytestmark = pytest.mark.system


def kill_at_random_moments(database: QueueDatabase, workers: Workers, *, kills: int, jobs: int) -> None:
    """Two workers; the runner of one of them is killed again and again while transactional jobs run."""
    database.run(
        "INSERT INTO job_types (name, backoff_base, backoff_cap) "
        "VALUES ('insert_row', '1 ms', '5 ms'), ('insert_row_plain', '1 ms', '5 ms')"
    )
    for job_type in ("insert_row", "insert_row_plain"):
        database.run(
            "INSERT INTO jobs (payload, max_attempts) SELECT jsonb_build_object('type', %s::text, 'data', "
            "jsonb_build_object('seconds', random() * 0.05)), 1000 FROM generate_series(1, %s)",
            job_type,
            jobs // 2,
        )
    started = [workers.start(concurrency=3) for _ in range(2)]
    for _ in range(kills):
        if not database.all("SELECT FROM jobs LIMIT 1"):
            break
        victim = random.choice(started)
        victim.wait_until_ready()
        time.sleep(random.uniform(0.0, 0.3))  # the random moment itself
        os.kill(victim.runner_pid, signal.SIGKILL)

    eventually(lambda: not database.all("SELECT FROM jobs LIMIT 1"), timeout=120)
    assert database.value("SELECT count(*) FROM effects") == jobs
    assert database.value("SELECT count(DISTINCT job_id) FROM effects") == jobs
    assert database.all("SELECT FROM dead_letter_jobs") == []
    assert database.all(FAULTS) == []


@pytest.mark.slow
def test_transactional_work_is_there_once_although_workers_are_killed(
    database: QueueDatabase, workers: Workers
) -> None:
    kill_at_random_moments(database, workers, kills=8, jobs=1500)


@pytest.mark.torture
@pytest.mark.timeout(1500)
def test_transactional_work_is_there_once_although_workers_are_killed_again_and_again(
    database: QueueDatabase, workers: Workers
) -> None:
    kill_at_random_moments(database, workers, kills=count(200), jobs=count(40_000))
