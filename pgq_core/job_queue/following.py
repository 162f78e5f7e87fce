"""Following a job by its id: where it stands, its result, and calling it off."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final

from pgq_core.domain.enqueue import checked_id, checked_wait
from pgq_core.domain.job import JSON, Outcome
from pgq_core.domain.payload import Unreadable
from pgq_core.errors import JobFailed, JobNotFound, ResultNotReady
from pgq_core.job_queue.answers import CancelAnswer, DeadLetterReport, JobReport, JobState, RunReport
from pgq_core.job_queue.flow import Flow, Pause
from pgq_core.queries import Queries
from pgq_core.queries.enqueues import FoundJobRow, JobEndRow
from pgq_core.queries.verbs import CancelRow

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.5


class Following:
    """The verbs get, result and cancel."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def get(self, job_id: int) -> Flow[JobReport]:
        job_id = checked_id(job_id)
        rows: list[FoundJobRow] = yield self._queries.find_job(job_id)
        if not rows:
            raise JobNotFound(job_id)
        return _report(job_id, rows[0])

    def result(self, job_id: int, timeout: float | None) -> Flow[JSON]:
        """Asks again after growing pauses until the job has ended."""
        job_id = checked_id(job_id)
        seconds = None if timeout is None else checked_wait(timeout).total_seconds()
        give_up_at = None if seconds is None else time.monotonic() + seconds
        pause = FIRST_PAUSE
        while True:
            rows: list[JobEndRow] = yield self._queries.find_job_end(job_id)
            if not rows[0].is_live:
                return _result(job_id, rows[0])
            if give_up_at is not None and (left := give_up_at - time.monotonic()) < pause:
                if left <= 0:
                    raise ResultNotReady(job_id, seconds or 0.0)
                pause = left
            yield Pause(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def cancel(self, job_id: int) -> Flow[CancelAnswer]:
        job_id = checked_id(job_id)
        rows: list[CancelRow] = yield self._queries.cancel_jobs([job_id])
        if rows[0].answer in (CancelAnswer.CANCELLED, CancelAnswer.REQUESTED):
            return CancelAnswer(rows[0].answer)
        yield from self.get(job_id)  # raises JobNotFound for an id that never was
        return CancelAnswer.ENDED


def _result(job_id: int, end: JobEndRow) -> JSON:
    if end.outcome == Outcome.SUCCEEDED:
        return end.result
    if end.outcome is None and end.dead_letter_id is None:
        raise JobNotFound(job_id)
    state = _ended_state(end.dead_letter_id, end.resolution, end.outcome)
    raise JobFailed(
        job_id, state, end.last_error or end.error, dead_letter_id=end.dead_letter_id, follow_up=end.replayed_job_id
    )


def _report(job_id: int, row: FoundJobRow) -> JobReport:
    payload = row.payload
    if row.status is not None:
        state = JobState(row.status)
    else:
        state = _ended_state(row.dead_letter_id, row.resolution, row.outcome)
    runs = () if isinstance(row.runs, Unreadable) else tuple(_run(run) for run in row.runs)
    return JobReport(
        id=job_id,
        state=state,
        queue=row.queue,
        type=row.job_type,
        data=payload.get("data", {}) if isinstance(payload, dict) else payload,
        priority=row.priority,
        attempts=row.attempts or 0,
        max_attempts=row.max_attempts,
        not_before=row.not_before,
        created_at=row.created_at,
        idempotency_key=row.idempotency_key,
        locked_by=row.locked_by,
        locked_at=row.locked_at,
        cancel_requested=row.cancel_requested,
        last_error=row.last_error,
        result=row.result,
        finished_at=row.finished_at if state.is_final else None,
        runs=runs,
        dead_letter=_dead_letter(row),
        replayed_from=row.replayed_from,
    )


def _ended_state(dead_letter_id: int | None, resolution: str | None, outcome: str | None) -> JobState:
    if dead_letter_id is not None:
        return JobState.DISCARDED if resolution == Outcome.DISCARDED else JobState.DEAD
    try:
        return JobState(outcome or "")
    except ValueError:  # its last run was a retry, a release ...: the row was deleted since
        return JobState.DELETED


def _run(run: JSON) -> RunReport:
    return RunReport(
        id=run["id"],
        attempt=run["attempt"],
        outcome=run["outcome"],
        worker_id=run["worker_id"],
        started_at=datetime.fromisoformat(run["started_at"]),
        finished_at=datetime.fromisoformat(run["finished_at"]),
        error=run["error"],
        error_class=run["error_class"],
    )


def _dead_letter(row: FoundJobRow) -> DeadLetterReport | None:
    if row.dead_letter_id is None or row.died_at is None:
        return None
    return DeadLetterReport(
        id=row.dead_letter_id,
        reason=row.reason or "",
        last_error=row.last_error or "",
        died_at=row.died_at,
        resolution=row.resolution,
        resolved_at=row.resolved_at,
        resolved_by=row.resolved_by,
        replayed_job_id=row.replayed_job_id,
    )
