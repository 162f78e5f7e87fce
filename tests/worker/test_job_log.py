"""What a worker says about its jobs: the fields, the levels, and when it says less."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from pgq_core.queries.claims import BuriedJob, FinishedJob, RescheduledJob, RescheduledRow
from pgq_core.worker.attempt import Attempt
from pgq_core.worker.job_log import LINES_PER_SECOND, JobLog

AT = datetime(2030, 1, 1, tzinfo=UTC)
SECRET = "open sesame"


def attempt(job_id: int = 1, queue: str = "mails") -> Attempt:
    row = SimpleNamespace(id=job_id, job_type="mail", queue=queue, attempts=1, data=SECRET, payload=SECRET)
    return cast(Attempt, SimpleNamespace(row=row, started=10.0, finished=10.25))


def finished(job_id: int = 1, outcome: str = "succeeded") -> FinishedJob:
    return FinishedJob(job_id, 7, None, None, outcome=outcome, result=SECRET)


def rescheduled(outcome: str = "retried") -> RescheduledJob:
    return RescheduledJob(1, 7, "w", None, None, outcome, charge=1, error="ValueError: no", error_class="ValueError")


def log(**options: bool) -> JobLog:
    return JobLog("w", **{"keep_all": False, "debug": True, **options})


FACTS = {"worker_id": "w", "job_id": 1, "job_type": "mail", "queue": "mails", "attempt": 2, "duration_ms": 250.0}


def test_every_end_of_a_run_has_its_fields_and_its_level() -> None:
    with capture_logs() as lines:
        log().finished(attempt(), finished())
        log().rescheduled(attempt(), rescheduled(), RescheduledRow(1, AT))
        log().died(BuriedJob(1, 7, "w", None, None, "exhausted", 1, "ValueError: no", "ValueError"), attempt())

    said = [{key: value for key, value in line.items() if value is not None} for line in lines]
    failure = {"error": "ValueError: no", "error_class": "ValueError"}
    for line, event, level, more in zip(
        said,
        ("job_succeeded", "job_retried", "job_dead"),
        ("info", "warning", "error"),
        ({}, {**failure, "retry_at": AT.isoformat()}, {**failure, "reason": "exhausted"}),
        strict=True,
    ):
        assert line == {"component": "pgq.worker", "event": event, "log_level": level, **FACTS, **more}


def test_what_went_as_wished_is_no_warning() -> None:
    with capture_logs() as lines:
        for outcome in ("snoozed", "released"):
            log().rescheduled(attempt(), rescheduled(outcome), RescheduledRow(1, AT))
        log().rescheduled(attempt(), rescheduled(), RescheduledRow(1, None))

    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("job_snoozed", "info"),
        ("job_released", "info"),
        ("job_cancelled", "info"),
    ]


def test_claims_and_starts_are_for_debugging() -> None:
    with capture_logs() as lines:
        log().claimed([cast(Any, attempt().row)])
        log().started(attempt())
        log(debug=False).claimed([cast(Any, attempt().row)])

    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("job_claimed", "debug"),
        ("job_started", "debug"),
    ]


def test_above_a_thousand_a_second_successes_become_one_line_per_second_and_queue() -> None:
    spoken = log()
    with capture_logs() as lines:
        for number in range(LINES_PER_SECOND + 30):
            spoken.finished(attempt(number, "mails" if number % 3 else "bills"), finished(number))
        spoken.rescheduled(attempt(), rescheduled(), RescheduledRow(1, AT))
        spoken.finished(attempt(), finished(outcome="discarded"))
        spoken.tick()
        spoken.finished(attempt(), finished())

    events = [line["event"] for line in lines]
    assert events.count("job_succeeded") == LINES_PER_SECOND + 1
    assert events.count("job_retried") == events.count("job_discarded") == 1
    summaries = {line["queue"]: line["count"] for line in lines if line["event"] == "jobs_succeeded"}
    assert summaries == {"mails": 20, "bills": 10}


def test_all_lines_are_kept_on_request() -> None:
    spoken = log(keep_all=True)
    with capture_logs() as lines:
        for number in range(LINES_PER_SECOND + 30):
            spoken.finished(attempt(number), finished(number))
        spoken.tick()

    assert len(lines) == LINES_PER_SECOND + 30


@pytest.mark.parametrize("outcome", ["succeeded", "discarded", "cancelled"])
def test_neither_data_nor_result_is_ever_said(outcome: str) -> None:
    with capture_logs() as lines:
        log().claimed([cast(Any, attempt().row)])
        log().started(attempt())
        log().finished(attempt(), finished(outcome=outcome))
        log().rescheduled(attempt(), rescheduled(), RescheduledRow(1, None))
        log().refused(attempt())

    assert SECRET not in str(lines)
