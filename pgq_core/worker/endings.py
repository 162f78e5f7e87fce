"""What becomes of an attempt: the write that its value, its error or a verdict means."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from pgq_core.domain.decision import Bury, FailureKind, Reschedule, decide_after_failure
from pgq_core.domain.fingerprint import fingerprint
from pgq_core.domain.job import DeathReason, Outcome
from pgq_core.domain.outcome import Cancel, Discard, HandlerWish, NonRetryable, Retry, Snooze
from pgq_core.domain.payload import storable_result
from pgq_core.domain.text import storable
from pgq_core.errors import MalformedData
from pgq_core.handlers import Failure, failure_of
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.worker.attempt import PLAIN_SUCCESS, Attempt, PlainSuccess, SpelledOut, Verdict, Write
from pgq_core.worker.clock import DatabaseClock

_OUR_FRAMES: Final = str(Path(__file__).parent.parent)
LONGEST_DELAY: Final = 100 * 366 * 86400.0
"""A hundred years: further ahead nobody means it, and PostgreSQL's dates end."""
SHORTEST_SNOOZE: Final = 1.0


class Endings:
    """Builds writes. Never raises: the outcome of a job must not depend on how well its handler behaves."""

    def __init__(self, worker_id: str, clock: DatabaseClock, random: Random) -> None:
        self._worker_id = worker_id
        self._clock = clock
        self._random = random

    def of_value(self, attempt: Attempt, value: object) -> Write:
        """The handler returned."""
        if isinstance(value, HandlerWish):
            return self.of_error(attempt, value)
        if value is None and not attempt.handler.transactional:
            return PLAIN_SUCCESS
        row, epoch = attempt.row, self._clock.epoch
        result, note = storable_result(value)
        return FinishedJob(
            row.id,
            row.claim_token,
            epoch(attempt.started),
            epoch(attempt.finished),
            Outcome.SUCCEEDED,
            result,
            note,
        )

    def spelled_out(self, attempt: Attempt, write: Write | None) -> SpelledOut | None:
        """The same, with all that its statement has to say."""
        if isinstance(write, PlainSuccess):
            row, epoch = attempt.row, self._clock.epoch
            return FinishedJob(row.id, row.claim_token, epoch(attempt.started), epoch(attempt.finished))
        return write

    def of_error(self, attempt: Attempt, error: BaseException) -> Write:
        """The handler raised, or returned a wish."""
        match error:
            case Discard():
                return self._finished(attempt, Outcome.DISCARDED, error.reason)
            case Cancel():
                return self._finished(attempt, Outcome.CANCELLED, error.reason)
            case Snooze():
                return self._back(attempt, Outcome.SNOOZED, error.reason, delay=self._snooze_seconds(error))
        failure = failure_of(_without_our_frames(error))
        match error:
            case Retry() if error.delay is not None:
                return self._after(attempt, FailureKind.ERROR, failure, error.delay.total_seconds())
            case NonRetryable():
                return self._after(attempt, FailureKind.NON_RETRYABLE, failure)
            case MalformedData():
                return self._after(attempt, FailureKind.MALFORMED, failure)
        return self._after(
            attempt, FailureKind.ERROR, failure, attempt.handler.wished_delay(attempt.row.attempts + 1, error)
        )

    def of_verdict(self, attempt: Attempt, verdict: Verdict, error: BaseException | None = None) -> Write | None:
        """The attempt was stopped, and did not succeed. None: nothing may be written."""
        match verdict:
            case Verdict.TIMEOUT:
                return self.of_timeout(attempt)
            case Verdict.CANCEL:
                return self._finished(attempt, Outcome.CANCELLED, _words(error, "cancelled by request"))
            case Verdict.INTERRUPT:
                return self._back(attempt, Outcome.RELEASED, "interrupted: its worker had to leave", delay=None)
            case Verdict.DROP:
                return None

    def of_timeout(self, attempt: Attempt) -> Write:
        failure = Failure(f"time limit of {attempt.limit:g} s passed", "TimeLimitPassed")
        return self._after(attempt, FailureKind.TIMEOUT, failure)

    def of_trouble(self, attempt: Attempt, error: BaseException) -> Write:
        """The database failed under a transactional handler: no fault of the job, so its attempt is not spent."""
        words = storable(f"the database failed under it: {error}", limit=2000)
        return self._back(attempt, Outcome.RELEASED, words, delay=self._random.uniform(1.0, 5.0))

    def without_run(self, row: ClaimedRow) -> BuriedJob:
        """A job that was claimed with no attempt left."""
        error = row.last_error or f"all {row.max_attempts} attempts are spent"
        return BuriedJob(
            id=row.id,
            token=row.claim_token,
            worker_id=self._worker_id,
            started=None,
            finished=None,
            reason=DeathReason.EXHAUSTED,
            charge=0,
            error=error,
            fingerprint=fingerprint(row.job_type or "", None, error, None),
            ran=False,
        )

    def _after(self, attempt: Attempt, kind: FailureKind, failure: Failure, delay: float | None = None) -> Write:
        row = attempt.row
        attempt.failure = failure
        decision = decide_after_failure(
            kind,
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            losses=row.losses,
            suspect=row.suspect,
            policy=attempt.handler.policy,
            random=self._random,
            delay=_bounded(delay),
        )
        match decision:
            case Reschedule():
                return self._retried(attempt, failure, decision)
            case Bury():
                return self._buried(attempt, failure, decision)

    def _retried(self, attempt: Attempt, failure: Failure, decision: Reschedule) -> RescheduledJob:
        return RescheduledJob(
            id=attempt.row.id,
            token=attempt.row.claim_token,
            worker_id=self._worker_id,
            started=self._clock.epoch(attempt.started),
            finished=self._clock.epoch(attempt.finished),
            outcome=decision.outcome,
            charge=decision.charge,
            delay=decision.delay,
            error=failure.error,
            error_class=failure.error_class,
            traceback=failure.traceback,
            loss=decision.loss,
            suspect=decision.suspect,
        )

    def _buried(self, attempt: Attempt, failure: Failure, decision: Bury) -> BuriedJob:
        return BuriedJob(
            id=attempt.row.id,
            token=attempt.row.claim_token,
            worker_id=self._worker_id,
            started=self._clock.epoch(attempt.started),
            finished=self._clock.epoch(attempt.finished),
            reason=decision.reason,
            charge=decision.charge,
            error=failure.error,
            error_class=failure.error_class,
            traceback=failure.traceback,
            fingerprint=failure.fingerprint(attempt.handler.type),
        )

    def _finished(self, attempt: Attempt, outcome: Outcome, reason: str) -> FinishedJob:
        return FinishedJob(
            id=attempt.row.id,
            token=attempt.row.claim_token,
            started=self._clock.epoch(attempt.started),
            finished=self._clock.epoch(attempt.finished),
            outcome=outcome,
            error=storable(str(reason)),
        )

    def _back(self, attempt: Attempt, outcome: Outcome, reason: str | None, *, delay: float | None) -> RescheduledJob:
        """Back without an attempt spent; a suspect stays one, since it has not proved itself."""
        return RescheduledJob(
            id=attempt.row.id,
            token=attempt.row.claim_token,
            worker_id=self._worker_id,
            started=self._clock.epoch(attempt.started),
            finished=self._clock.epoch(attempt.finished),
            outcome=outcome,
            charge=0,
            delay=delay,
            error=None if reason is None else storable(str(reason)),
            suspect=attempt.row.suspect,
        )

    def _snooze_seconds(self, wish: Snooze) -> float:
        """Never at once: a snooze spends no attempt, so a time that is past would run the job without end or pause."""
        if wish.until is not None:
            delay = wish.until.timestamp() - self._clock.epoch(time.monotonic())
        else:
            delay = (wish.delay or timedelta()).total_seconds()
        return max(_bounded(delay) or 0.0, SHORTEST_SNOOZE)


def _bounded(delay: float | None) -> float | None:
    """A delay that PostgreSQL can add to now(): NaN and the like count as no wish.

    >>> _bounded(-1.0), _bounded(10**400) == LONGEST_DELAY, _bounded(float("nan"))
    (0.0, True, None)
    """
    if delay is None or delay != delay:  # noqa: PLR0124 - NaN; math.isnan cannot take an integer of any size
        return None
    return float(min(max(delay, 0.0), LONGEST_DELAY))


def _without_our_frames(error: BaseException) -> BaseException:
    """The traceback of a handler begins in the handler."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OUR_FRAMES):
        trace = trace.tb_next
    return error if trace is None else error.with_traceback(trace)


def _words(error: BaseException | None, default: str) -> str:
    """The reason a handler gave when it stopped of its own accord."""
    return error.reason if isinstance(error, Cancel) else default
