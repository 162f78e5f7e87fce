"""Workers that are killed, suspended and stopped in the middle of a job: real processes, fast settings.

Beat 0.1 s, reaper 0.1 s, and where somebody is to be taken for dead a stale limit of 0.5 s.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.signals import suspend
from tests.support.waiting import TIMEOUT, eventually
from tests.support.worker_process import Workers

pytestmark = pytest.mark.system

HASTY = {"stale_limit": 0.5}


def ledger(database: QueueDatabase, job_id: int, event: str) -> list[int]:
    """Process ids that wrote `event` for the job, in order."""
    rows = database.all("SELECT pid FROM ledger WHERE job_id = %s AND event = %s ORDER BY id", job_id, event)
    return [row["pid"] for row in rows]


def assert_lost_and_succeeded_once(database: QueueDatabase, job_id: int) -> None:
    assert database.outcomes(job_id) == ["lost", "succeeded"]


def test_job_of_a_killed_runner_is_back_at_once_and_succeeds_elsewhere(
    database: QueueDatabase, workers: Workers
) -> None:
    job_id = database.put("ledger", {"seconds": 1.5})
    first = workers.start()
    eventually(lambda: ledger(database, job_id, "start"))

    os.kill(first.runner_pid, signal.SIGKILL)

    run = eventually(lambda: database.runs(job_id))[0]
    assert (run["outcome"], run["success"], run["attempt"]) == ("lost", False, 1)
    assert run["error"] == "worker died: SIGKILL"
    assert run["started_at"] < run["finished_at"]
    workers.start()
    eventually(lambda: database.job(job_id) is None)
    assert database.outcomes(job_id) == ["lost", "succeeded"]
    assert [run["attempt"] for run in database.runs(job_id)] == [1, 2]
    ended = database.one("SELECT * FROM workers WHERE id = %s", run["worker_id"])
    assert (ended["state"], ended["exit_signal"]) == ("crashed", "SIGKILL")
    assert database.all(FAULTS) == []


def test_job_of_a_worker_that_vanished_is_rescued_by_the_reaper(database: QueueDatabase, workers: Workers) -> None:
    started = [workers.start(**HASTY) for _ in range(2)]
    job_id = database.put("ledger", {"seconds": 1.5}, max_attempts=1)
    pid = eventually(lambda: ledger(database, job_id, "start"))[0]
    (victim,) = [worker for worker in started if worker.runner_pid == pid]

    victim.kill_all()

    run = eventually(lambda: database.runs(job_id))[0]
    assert (run["outcome"], run["attempt"]) == ("lost", 1)
    eventually(lambda: database.job(job_id) is None)
    assert_lost_and_succeeded_once(database, job_id)
    lost = database.one("SELECT * FROM workers WHERE id = %s", run["worker_id"])
    assert (lost["state"], lost["stopped_at"] is not None) == ("lost", True)
    assert database.all(FAULTS) == []


def test_lost_job_is_found_although_its_workers_row_is_gone(database: QueueDatabase, workers: Workers) -> None:
    database.run(
        "INSERT INTO jobs (payload, locked_by, locked_at, claim_token, status) "
        "VALUES ('{\"type\": \"noop\"}', 'gone', now() - interval '1 hour', 1, 'running')"
    )
    job_id = database.value("SELECT id FROM jobs")

    workers.start(**HASTY)

    eventually(lambda: database.job(job_id) is None)
    assert_lost_and_succeeded_once(database, job_id)


def test_suspended_worker_that_wakes_up_late_changes_nothing(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("steps", {"steps": 30, "seconds": 0.1})
    first = workers.start("--no-maintenance", **HASTY)
    eventually(lambda: ledger(database, job_id, "step"))
    suspended, keeper = first.runner_pid, first.keeper_pid
    for pid in (keeper, suspended):
        suspend(pid)
    workers.start(**HASTY)
    eventually(lambda: len(ledger(database, job_id, "start")) >= 2)
    steps = ledger(database, job_id, "step").count(suspended)

    for pid in (suspended, keeper):
        os.kill(pid, signal.SIGCONT)

    eventually(lambda: database.job(job_id) is None)
    eventually(lambda: database.all("SELECT FROM workers WHERE state = 'lost' AND exit_reason LIKE 'fenced:%%'"))
    assert_lost_and_succeeded_once(database, job_id)
    assert database.runs(job_id)[-1]["worker_id"] != database.runs(job_id)[0]["worker_id"]
    # It stopped its job within some steps, and it was replaced.
    assert ledger(database, job_id, "end").count(suspended) == 0
    assert ledger(database, job_id, "step").count(suspended) - steps <= 5
    eventually(lambda: first.runner() is not None and first.runner_pid != suspended)
    assert database.all(FAULTS) == []


def test_keeper_does_not_beat_for_a_suspended_runner(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("ledger", {"seconds": 2})
    first = workers.start(**HASTY)
    eventually(lambda: ledger(database, job_id, "start"))
    suspended = first.runner_pid

    suspend(suspended)

    eventually(lambda: database.outcomes(job_id) == ["lost"])
    os.kill(suspended, signal.SIGCONT)
    eventually(lambda: database.job(job_id) is None)
    assert_lost_and_succeeded_once(database, job_id)
    assert ledger(database, job_id, "end").count(suspended) == 0


def test_stopped_worker_finishes_its_job(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("ledger", {"seconds": 1.0})
    later = database.put("ledger", queue="default", priority=-1)
    worker = workers.start(concurrency=1)
    eventually(lambda: ledger(database, job_id, "start"))

    code = worker.stop()

    assert code == 0
    assert database.outcomes(job_id) == ["succeeded"]
    row = database.job(later)
    assert row is not None
    assert (row["status"], row["attempts"], row["locked_by"]) == ("pending", 0, None)
    assert database.outcomes(later) == []
    assert database.all("SELECT FROM jobs WHERE status = 'running'") == []
    assert database.value("SELECT exit_reason FROM workers") == "asked to stop"


def test_stopped_worker_hands_back_what_does_not_end_within_the_grace(
    database: QueueDatabase, workers: Workers
) -> None:
    threaded = database.put("sleep", {"seconds": 60}, max_attempts=1)
    coroutine = database.put("sleep_async", {"seconds": 60}, max_attempts=1)
    worker = workers.start(grace=0.3)
    eventually(lambda: database.value("SELECT running FROM workers") == 2)

    code = worker.stop()

    assert code == 0
    for job_id in (threaded, coroutine):
        row = database.job(job_id)
        assert row is not None
        assert (row["status"], row["attempts"], row["locked_by"]) == ("pending", 0, None)
        assert database.outcomes(job_id) == ["released"]


def test_second_signal_hands_back_at_once(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("sleep_async", {"seconds": 60})
    worker = workers.start(grace=60)
    eventually(lambda: database.value("SELECT running FROM workers") == 1)

    worker.process.send_signal(signal.SIGINT)
    eventually(lambda: "worker_draining" in worker.text())
    worker.process.send_signal(signal.SIGINT)

    assert worker.process.wait(TIMEOUT) == 0
    assert database.outcomes(job_id) == ["released"]


def test_runner_whose_keeper_is_killed_finishes_its_job_and_leaves(database: QueueDatabase, workers: Workers) -> None:
    job_id = database.put("ledger", {"seconds": 5.0})
    worker = workers.start("--no-maintenance", **HASTY)
    workers.start(queue="other", **HASTY)  # its reaper watches
    eventually(lambda: ledger(database, job_id, "start"))
    runner = worker.runner()
    assert runner is not None

    os.kill(worker.keeper_pid, signal.SIGKILL)

    runner.wait(TIMEOUT)
    assert database.outcomes(job_id) == ["succeeded"]
    row = database.one("SELECT * FROM workers WHERE pid = %s", runner.pid)
    assert (row["state"], row["exit_reason"]) == ("stopped", "its keeper was gone: drained by itself")


@pytest.mark.parametrize(
    ("job_type", "data", "error"),
    [
        ("kill", {"signal": "SIGSEGV"}, "worker died: SIGSEGV"),
        pytest.param("kill", {"signal": "SIGKILL"}, "worker died: SIGKILL", marks=pytest.mark.slow),
        ("exit", {"code": 0}, "worker died: exit code 0"),
    ],
)
def test_job_that_kills_its_worker_becomes_a_dead_letter_that_names_the_signal(
    database: QueueDatabase, workers: Workers, job_type: str, data: dict[str, object], error: str
) -> None:
    database.run("INSERT INTO job_types (name, backoff_base, backoff_cap) VALUES (%s, '1 ms', '10 ms')", job_type)
    job_id = database.put(job_type, data, max_attempts=2)
    healthy = [database.put("noop") for _ in range(20)]

    workers.start(ready=False)

    letter = eventually(lambda: database.letter(job_id))
    assert letter is not None
    assert (letter["reason"], letter["attempts"], letter["last_error"]) == ("crash_loop", 2, error)
    eventually(lambda: all(database.outcomes(job)[-1:] == ["succeeded"] for job in healthy))
    charged = database.all("SELECT FROM dead_letter_jobs WHERE original_job_id <> %s", job_id)
    assert charged == []
    # And there is a worker again.
    eventually(lambda: database.all("SELECT FROM workers WHERE state = 'running' AND stopped_at IS NULL"))
    assert database.all(FAULTS) == []


def test_innocent_neighbours_of_a_killer_are_not_charged(database: QueueDatabase, workers: Workers) -> None:
    database.run("INSERT INTO job_types (name, backoff_base, backoff_cap) VALUES ('exit', '1 ms', '10 ms')")
    neighbours = [database.put("sleep", {"seconds": 0.5}, max_attempts=1) for _ in range(3)]
    killer = database.put("exit", {"code": 9}, max_attempts=1, priority=-1)

    workers.start(concurrency=4, ready=False)

    letter = eventually(lambda: database.letter(killer))
    assert letter is not None
    assert letter["reason"] == "crash_loop"
    eventually(lambda: all(database.job(job_id) is None for job_id in neighbours))
    assert all(database.outcomes(job_id)[-1] == "succeeded" for job_id in neighbours)


@pytest.mark.parametrize("job_type", ["ledger", "spin", "hold_gil", "block_loop"])
def test_healthy_job_three_times_as_long_as_the_stale_limit_runs_once(
    database: QueueDatabase, workers: Workers, job_type: str
) -> None:
    job_id = database.put(job_type, {"seconds": 1.6})
    workers.start(**HASTY)
    workers.start(**HASTY)

    eventually(lambda: database.job(job_id) is None)

    assert database.outcomes(job_id) == ["succeeded"]
    assert len(ledger(database, job_id, "start")) == 1


def test_coroutine_that_blocks_its_loop_beyond_its_time_limit_is_ended_by_the_keeper(
    database: QueueDatabase, workers: Workers
) -> None:
    job_id = database.put("block_loop", {"seconds": 60}, timeout="200 ms", max_attempts=1)

    worker = workers.start(grace=0.3)

    letter = eventually(lambda: database.letter(job_id))
    assert letter is not None
    assert letter["reason"] == "timeout"
    eventually(lambda: "a job held it up beyond its time limit" in worker.text())


def test_worker_that_cannot_beat_ends_its_jobs_before_others_start_them(
    database: QueueDatabase, workers: Workers
) -> None:
    job_id = database.put("steps", {"steps": 100, "seconds": 0.05})
    first = workers.start("--no-maintenance", **HASTY)
    eventually(lambda: ledger(database, job_id, "step"))
    pid = first.runner_pid

    # Only the path of the beats is blocked: its row is held by somebody.
    import psycopg

    with psycopg.connect(database.dsn) as blocker:
        blocker.execute("SELECT FROM workers FOR UPDATE")
        eventually(lambda: f'"pid":{pid}' in first.text() and "runner_ended" in first.text())
        blocker.rollback()
    workers.start()

    eventually(lambda: database.job(job_id) is None)
    last_of_first = database.value("SELECT max(at) FROM ledger WHERE job_id = %s AND pid = %s", job_id, pid)
    first_of_second = database.value("SELECT min(at) FROM ledger WHERE job_id = %s AND pid <> %s", job_id, pid)
    assert last_of_first < first_of_second
    assert database.outcomes(job_id)[-1] == "succeeded"
