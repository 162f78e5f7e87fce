"""Jobs that tear at what they run in end like any other that fails, and hold nobody up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import WorkerProcess, Workers

pytestmark = pytest.mark.system

APPS = ("tests.worker.kinds", "tests.worker.hostile_kinds")


def slow(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


def start(workers: Workers, **settings: object) -> WorkerProcess:
    return workers.start(apps=APPS, concurrency=2, backoff_cap=0.1, **settings)


def assert_others_run(database: QueueDatabase) -> None:
    good = [database.put(kind) for kind in ("noop", "plain", "insert_row")]
    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in good), timeout=30)
    assert database.all(FAULTS) == []


@pytest.mark.parametrize("job_type", slow("exit_in_a_task", "exit_in_a_callback"))
def test_job_that_ends_the_event_loop_is_charged_and_dies(
    database: QueueDatabase, workers: Workers, job_type: str
) -> None:
    start(workers)

    bad = database.put(job_type, max_attempts=2)
    letter = eventually(lambda: database.letter(bad), timeout=30)

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("crash_loop", 2)
    assert_others_run(database)


@pytest.mark.slow
@pytest.mark.parametrize("job_type", ["cancel_all_tasks", "stop_loop", "close_descriptors"])
def test_job_that_ends_the_event_loop_on_its_way_out_is_counted(
    database: QueueDatabase, workers: Workers, job_type: str
) -> None:
    """Its handler was through, so the first time nothing is charged; then it runs alone, and there is no doubt left."""
    start(workers)

    bad = database.put(job_type, max_attempts=2)
    letter = eventually(lambda: database.letter(bad), timeout=60)

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("crash_loop", 2)
    assert database.outcomes(bad) == ["lost", "lost", "dead"]
    assert_others_run(database)


@pytest.mark.slow
def test_job_that_takes_the_descriptors_away_is_charged_and_dies(database: QueueDatabase, workers: Workers) -> None:
    start(workers)
    beside = database.put("sleep_async", {"seconds": 5})
    bad = database.put("forbid_descriptors", max_attempts=2)
    letter = eventually(lambda: database.letter(bad), timeout=90)

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("crash_loop", 2)
    assert "no file descriptor is left" in letter["last_error"]
    eventually(lambda: database.outcomes(beside)[-1:] == ["succeeded"], timeout=60)
    assert (database.runs(beside)[-1])["attempt"] == 1, "never charged"
    assert_others_run(database)


@pytest.mark.slow
def test_worker_goes_on_after_a_job_that_terminated_its_process(database: QueueDatabase, workers: Workers) -> None:
    worker = start(workers)
    first = worker.runner_pid
    bad = database.put("terminate_own_process")
    eventually(lambda: database.outcomes(bad) == ["succeeded"], timeout=30)

    eventually(lambda: worker.runner() is not None and worker.runner_pid != first, timeout=30)
    assert_others_run(database)
    assert worker.stop() == 0


@pytest.mark.slow
def test_runner_without_file_descriptors_is_replaced(database: QueueDatabase, workers: Workers) -> None:
    worker = start(workers)
    first = worker.runner_pid
    database.put("use_up_descriptors")

    eventually(lambda: worker.runner() is not None and worker.runner_pid != first, timeout=30)
    assert_others_run(database)
    assert "no file descriptor is left" in worker.text()


@pytest.mark.slow
def test_runner_whose_thread_was_ended_from_outside_is_replaced(database: QueueDatabase, workers: Workers) -> None:
    worker = start(workers)
    first = worker.runner_pid
    database.put("end_thread")

    # The thread notices when it next runs Python code: with its next job.
    eventually(lambda: database.value("SELECT count(*) FROM job_runs") == 1, timeout=30)
    eventually(lambda: database.put("plain") and worker.runner() is not None and worker.runner_pid != first, timeout=30)
    assert_others_run(database)


@pytest.mark.parametrize("job_type", ["policy_leaves", *slow("policy_leaves_async", "unspeakable")])
def test_error_whose_own_code_leaves_costs_no_slot(database: QueueDatabase, workers: Workers, job_type: str) -> None:
    bad = [database.put(job_type, max_attempts=1, priority=1) for _ in range(3)]
    worker = start(workers)
    runner = worker.runner_pid

    eventually(lambda: all(database.letter(job_id) for job_id in bad), timeout=30)
    assert_others_run(database)
    assert worker.runner_pid == runner


@pytest.mark.parametrize(
    "job_type", ["lose_another_claim", *slow("lose_another_claim_async", "lose_another_claim_in_transaction")]
)
def test_claim_that_a_handler_lost_elsewhere_is_its_error(
    database: QueueDatabase, workers: Workers, job_type: str
) -> None:
    bad = database.put(job_type, max_attempts=1)
    start(workers)

    letter = eventually(lambda: database.letter(bad), timeout=30)

    assert letter is not None
    assert letter["error_class"] == "pgq_core.errors.ClaimLost"
    assert_others_run(database)


@pytest.mark.parametrize(
    ("job_type", "words"),
    [
        pytest.param("other_database_is_down", "OperationalError", marks=pytest.mark.slow),
        ("other_database_is_down_plain", "OperationalError"),
        pytest.param("close_connection", "closed the connection", marks=pytest.mark.slow),
        pytest.param("close_connection_plain", "the connection is closed", marks=pytest.mark.slow),
    ],
)
def test_trouble_that_a_transactional_handler_made_is_charged(
    database: QueueDatabase, workers: Workers, job_type: str, words: str
) -> None:
    bad = database.put(job_type, max_attempts=2)
    start(workers)

    letter = eventually(lambda: database.letter(bad), timeout=30)

    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("exhausted", 2)
    assert words in letter["last_error"]
    assert_others_run(database)


@pytest.mark.parametrize("job_type", ["say", "say_plain"])
@pytest.mark.parametrize("statement", ["ROLLBACK", *slow("COMMIT")])
def test_transaction_that_a_handler_ended_itself_is_no_success(
    database: QueueDatabase, workers: Workers, job_type: str, statement: str
) -> None:
    bad = database.put(job_type, {"sql": statement}, max_attempts=1)
    start(workers)

    letter = eventually(lambda: database.letter(bad), timeout=30)

    assert letter is not None
    assert "ended the job's transaction by a statement of its own" in letter["last_error"]
    assert_others_run(database)


@pytest.mark.parametrize("suffix", ["", "_plain"])
def test_what_a_job_set_in_its_session_does_not_meet_the_next_one(
    database: QueueDatabase, workers: Workers, suffix: str
) -> None:
    before = database.put(f"look{suffix}")
    start(workers)
    eventually(lambda: database.outcomes(before) == ["succeeded"], timeout=30)
    between = database.put(f"leave_behind{suffix}")
    eventually(lambda: database.outcomes(between) == ["succeeded"], timeout=30)
    after = database.put(f"look{suffix}")
    eventually(lambda: database.outcomes(after) == ["succeeded"], timeout=30)

    assert database.runs(after)[0]["result"] == database.runs(before)[0]["result"]  # the same session, as it was


@pytest.mark.parametrize("encoding", ["LATIN1", *slow("SQL_ASCII")])
def test_client_encoding_of_the_environment_does_not_count(
    database: QueueDatabase, workers: Workers, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    jobs = [database.put("give", {"python": repr(text)}) for text in ("plain", "日本語 €", "ż")]
    start(workers)

    eventually(lambda: all(database.outcomes(job_id) == ["succeeded"] for job_id in jobs), timeout=30)

    assert [database.runs(job_id)[0]["result"] for job_id in jobs] == ["plain", "日本語 €", "ż"]
