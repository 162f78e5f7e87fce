"""Many jobs and several workers: everybody takes part, everything runs once, deploys cost nothing."""

from __future__ import annotations

import random

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system


def fill(database: QueueDatabase, job_type: str, count: int, data: str = "{}") -> None:
    database.run(
        "INSERT INTO jobs (payload) SELECT jsonb_build_object('type', %s::text, 'data', %s::jsonb) "
        "FROM generate_series(1, %s)",
        job_type,
        data,
        count,
    )


def succeeded(database: QueueDatabase) -> int:
    return int(database.value("SELECT count(*) FROM job_runs WHERE outcome = 'succeeded'"))


def test_four_workers_share_the_work(database: QueueDatabase, workers: Workers) -> None:
    for _ in range(4):
        workers.start(concurrency=5)

    database.run("SELECT pause('default')")
    fill(database, "sleep", 1000, '{"seconds": 0.02}')
    database.run("SELECT resume('default')")
    eventually(lambda: succeeded(database) == 1000, timeout=120)
    shares = database.all("SELECT worker_id, count(*) AS n FROM job_runs GROUP BY worker_id")
    assert len(shares) == 4
    assert all(150 <= share["n"] <= 350 for share in shares), shares
    assert database.all(FAULTS) == []


def test_each_of_ten_thousand_jobs_is_executed_once(database: QueueDatabase, workers: Workers) -> None:
    fill(database, "ledger", 10_000)

    for _ in range(3):
        # Nobody is to be taken for lost here, however busy the machine is: his jobs would rightly run again.
        workers.start(ready=False, concurrency=8, heartbeat=5.0, stale_limit=30.0)

    eventually(lambda: succeeded(database) == 10_000, timeout=500, interval=0.2)
    assert database.value("SELECT count(*) FROM ledger WHERE event = 'start'") == 10_000
    assert database.value("SELECT count(DISTINCT job_id) FROM ledger WHERE event = 'start'") == 10_000
    assert database.all("SELECT FROM jobs") == []
    assert database.value("SELECT sum(succeeded) FROM job_stats") == 10_000
    assert database.all(FAULTS) == []


def test_deploys_cost_no_attempts(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("sleep_async", {"seconds": 2}, max_attempts=1)

    for _ in range(3):
        worker = workers.start(grace=0.1)
        database.until_started(1)
        assert worker.stop() == 0
        row = database.job(job_id)
        assert row is not None
        assert (row["status"], row["attempts"]) == ("pending", 0)
    workers.start()

    eventually(lambda: database.job(job_id) is None, timeout=30)
    assert database.outcomes(job_id) == ["released", "released", "released", "succeeded"]
    assert [run["attempt"] for run in database.runs(job_id)] == [1, 1, 1, 1]


@pytest.mark.slow
def test_stop_at_any_moment_leaves_no_job_with_a_worker_that_is_gone(database: QueueDatabase, workers: Workers) -> None:
    fill(database, "noop", 30_000)

    for _ in range(5):
        worker = workers.start("--no-maintenance", concurrency=random.choice([1, 20]))
        assert worker.stop() == 0
        assert database.all("SELECT FROM jobs WHERE status = 'running'") == []

    left = int(database.value("SELECT count(*) FROM jobs"))
    assert succeeded(database) == 30_000 - left
    assert database.value("SELECT count(*) FROM jobs WHERE attempts > 0") == 0
    assert database.all(FAULTS) == []


def test_cancel_at_a_random_moment_ends_as_it_was_answered(database: QueueDatabase, workers: Workers) -> None:
    workers.start(concurrency=5)
    answers: dict[int, str] = {}

    for _ in range(100):
        job_id = database.put("sleep_async", {"seconds": 0.02})
        if random.random() < 0.5:
            eventually(lambda job_id=job_id: (database.job(job_id) or {"status": "running"})["status"] == "running")  # type: ignore[misc]  # binds
        answers[job_id] = database.value("SELECT cancel(%s)", job_id)

    eventually(lambda: not database.all("SELECT FROM jobs"), timeout=60)
    for job_id, answer in answers.items():
        (outcome,) = database.outcomes(job_id)
        match answer:
            case "cancelled":
                assert outcome == "cancelled"
            case "requested":
                assert outcome in {"cancelled", "succeeded"}
            case _:
                assert outcome == "succeeded"
    assert database.all(FAULTS) == []


def test_burst_ends_when_nothing_is_left(database: QueueDatabase, workers: Workers) -> None:
    fill(database, "noop", 500)

    worker = workers.start("--burst", ready=False)

    assert worker.process.wait(60) == 0
    assert succeeded(database) == 500
    assert database.value("SELECT exit_reason FROM workers") == "nothing was left to do"
