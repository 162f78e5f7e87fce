"""One line per transition of a job; above a thousand successes a second one summary per second and queue."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from pgq_core.logs import get_logger, say_many
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob, RescheduledRow
from pgq_core.queries.upkeep import ReleasedRow
from pgq_core.worker.attempt import Attempt

LINES_PER_SECOND: Final = 1000
_SHOWN_IDS: Final = 20


class JobLog:
    """Never the payload. Rendering happens only for lines that are written."""

    def __init__(self, worker_id: str, *, keep_all: bool, debug: bool) -> None:
        self._logger = get_logger("pgq.worker", worker_id=worker_id).bind()
        self._keep_all = keep_all
        self.is_debug = debug
        self._lines = 0
        self._unsaid: Counter[str] = Counter()

    def claimed(self, rows: list[ClaimedRow]) -> None:
        if self.is_debug:
            for row in rows:
                self._logger.debug("job_claimed", **_facts(row))

    def started(self, attempt: Attempt) -> None:
        self._logger.debug("job_started", **_facts(attempt.row))

    def warn_about_transaction(self, attempt: Attempt) -> None:
        age = round(time.monotonic() - attempt.started, 1)
        self._logger.warning("job_transaction_is_long", **_facts(attempt.row), age_seconds=age)

    def finished(self, attempt: Attempt, write: FinishedJob) -> None:
        if write.outcome == "succeeded" and not self._may_say(attempt):
            return
        event = f"job_{write.outcome}"
        self._logger.info(event, **_facts(attempt.row), duration_ms=_duration(attempt), note=write.error)

    def succeeded(self, attempts: Sequence[Attempt]) -> None:
        """The same for many at once that said nothing."""
        said = attempts if self._keep_all else attempts[: max(LINES_PER_SECOND - self._lines, 0)]
        self._lines += len(attempts)
        if said:
            facts = ({**_facts(attempt.row), "duration_ms": _duration(attempt)} for attempt in said)
            say_many(self._logger, "job_succeeded", facts)
        if len(said) < len(attempts):
            self._unsaid.update([attempt.row.queue for attempt in attempts[len(said) :]])

    def rescheduled(self, attempt: Attempt, write: RescheduledJob, row: RescheduledRow) -> None:
        """A failure is a warning; a snooze, a release and a cancel are as they should be."""
        outcome = "cancelled" if row.retry_at is None else write.outcome
        say = self._logger.warning if outcome == "retried" else self._logger.info
        say(
            f"job_{outcome}",
            **_facts(attempt.row),
            duration_ms=_duration(attempt),
            error=write.error,
            error_class=write.error_class,
            retry_at=None if row.retry_at is None else row.retry_at.isoformat(),
        )

    def died(self, write: BuriedJob, attempt: Attempt | None) -> None:
        facts: dict[str, object] = {"job_id": write.id} if attempt is None else _facts(attempt.row)
        self._logger.error(
            "job_dead",
            **facts,
            duration_ms=None if attempt is None else _duration(attempt),
            error=write.error,
            error_class=write.error_class,
            reason=str(write.reason),
        )

    def handed_back(self, rows: Sequence[ReleasedRow]) -> None:
        """Claimed, and given back without having started."""
        ids = [row.id for row in rows if not row.is_cancelled]
        if ids:
            self._logger.info("jobs_handed_back", count=len(ids), job_ids=ids[:_SHOWN_IDS])
        for row in rows:
            if row.is_cancelled:
                self._logger.info("job_cancelled", job_id=row.id)

    def refused(self, attempt: Attempt) -> None:
        """The job was no longer ours; its new owner decides."""
        self._logger.warning("late_write_refused", **_facts(attempt.row), duration_ms=_duration(attempt))

    def tick(self) -> None:
        """Once a second: says what was kept back since the last time."""
        for queue, count in self._unsaid.items():
            self._logger.info("jobs_succeeded", queue=queue, count=count)
        self._unsaid.clear()
        self._lines = 0

    def _may_say(self, attempt: Attempt) -> bool:
        self._lines += 1
        if self._keep_all or self._lines <= LINES_PER_SECOND:
            return True
        self._unsaid[attempt.row.queue] += 1
        return False


def _facts(row: ClaimedRow) -> dict[str, object]:
    return {"job_id": row.id, "job_type": row.job_type, "queue": row.queue, "attempt": row.attempts + 1}


def _duration(attempt: Attempt) -> float:
    return round((attempt.finished - attempt.started) * 1000, 3)
