"""Jobs that misbehave harm themselves and nobody else."""

from __future__ import annotations

import json

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    "job_type",
    [
        "fork",
        pytest.param("fork_async", marks=pytest.mark.slow),
        "multiprocess",
        "close_streams",
        "change_process",
    ],
)
def test_jobs_after_one_that_misbehaves_run_as_ever_and_the_worker_stops_in_time(
    database: QueueDatabase, workers: Workers, job_type: str
) -> None:
    bad = [database.put(job_type, priority=1) for _ in range(3)]
    worker = workers.start(concurrency=2)
    runner = worker.runner_pid
    eventually(lambda: all(database.runs(job_id) for job_id in bad), timeout=30)

    good = [database.put(kind) for kind in ("noop", "plain", "insert_row") for _ in range(4)]
    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in good), timeout=30)

    assert worker.runner_pid == runner
    assert worker.stop() == 0
    assert all(len(database.runs(job_id)) == 1 for job_id in bad)
    assert database.value("SELECT sum(finished) FROM workers") == len(good) + sum(
        database.outcomes(job_id) == ["succeeded"] for job_id in bad
    )
    for line in worker.text().splitlines():
        if line.startswith("{"):
            json.loads(line)
    assert database.all(FAULTS) == []


def test_job_that_never_ends_is_given_up_and_its_worker_replaced(database: QueueDatabase, workers: Workers) -> None:
    neighbour = database.put("sleep", {"seconds": 60}, max_attempts=1)
    endless = database.put("never_ends", timeout="300 ms", max_attempts=1)
    worker = workers.start(concurrency=2, grace=0.5)
    first = worker.runner_pid

    letter = eventually(lambda: database.letter(endless), timeout=30)
    assert letter is not None
    assert letter["reason"] == "timeout"
    eventually(lambda: worker.runner() is not None and worker.runner_pid != first, timeout=30)
    eventually(lambda: database.outcomes(neighbour) == ["released"], timeout=30)

    assert database.value("SELECT attempts FROM jobs WHERE id = %s", neighbour) == 0
    assert worker.stop() == 0
