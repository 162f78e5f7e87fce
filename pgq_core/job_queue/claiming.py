"""Claims of a caller's own loop: a lease instead of a heartbeat, and the same statements that workers write with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from random import Random, SystemRandom
from typing import Any, Final

import psycopg

from pgq_core.domain.decision import Bury, FailureKind, Reschedule, decide_after_failure
from pgq_core.domain.enqueue import checked_delay, checked_lease, checked_limit, checked_name
from pgq_core.domain.job import JSON, DeathReason, Job, Outcome
from pgq_core.domain.outcome import NonRetryable, Retry
from pgq_core.domain.payload import Unreadable, storable_result
from pgq_core.domain.retry import RetryPolicy
from pgq_core.errors import ClaimLost, InvalidJob
from pgq_core.handlers import Failure, Registry, failure_of
from pgq_core.job_queue.announced import AnnouncedTypes
from pgq_core.job_queue.answers import FailedJob, Lease
from pgq_core.job_queue.flow import Attempt, Flow, Held
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import (
    BuriedJob,
    BuriedRow,
    ClaimedRow,
    FinishedJob,
    RescheduledJob,
    RescheduledRow,
    in_claim_order,
)
from pgq_core.queries.enqueues import LeaseRow

DEFAULT_LEASE: Final = timedelta(minutes=5)
MAX_TRIES: Final = 4
OWN_SLOT: Final = None
"""A caller's transaction may stay open: in `job_stats` it counts in a row of its session, for which no worker waits."""


class Claiming:
    """The verbs claim, extend, complete, fail and release."""

    def __init__(self, queries: Queries, announced: AnnouncedTypes, registry: Registry, *, worker_id: str) -> None:
        self._queries = queries
        self._announced = announced
        self._registry = registry
        self._worker_id = worker_id
        self._random: Random = (
            SystemRandom()
        )  # no state that a forked child could share: equal jitter would be no jitter

    def claim(
        self,
        queue: str,
        *,
        limit: int,
        lease: timedelta | float,
        worker_id: str | None,
        job_types: Sequence[str] | None,
    ) -> Flow[list[Job]]:
        worker = self._worker_id if worker_id is None else checked_name("worker_id", worker_id)
        rows: list[ClaimedRow] = yield self._queries.claim_jobs(
            queue=checked_name("queue", queue),
            worker_id=worker,
            limit=checked_limit(limit),
            job_types=None if job_types is None else _checked_types(job_types),
            lease=checked_lease(lease),
        )
        jobs = [row.to_job() for row in in_claim_order(rows)]
        unfit = [letter for job in jobs if (letter := _unfit(job, worker)) is not None]
        if not unfit:
            return jobs
        yield from self._written(self._queries.bury_jobs(unfit, slot=OWN_SLOT))
        ended = {letter.id for letter in unfit}
        return [job for job in jobs if job.id not in ended]

    def extend(self, job: Job, *, lease: timedelta | float) -> Flow[Lease]:
        rows: list[LeaseRow] = yield self._queries.extend_lease(
            id=job.id, token=_token(job), lease=checked_lease(lease)
        )
        if not rows:
            raise ClaimLost(job.id)
        return Lease(rows[0].lease_until, rows[0].cancel_requested)

    def complete(self, job: Job, result: object) -> Flow[None]:
        text, note = storable_result(result)
        finished = FinishedJob(job.id, _token(job), started=None, finished=None, result=text, error=note)
        statement = self._queries.finish_jobs([finished], worker_id=self._worker_id, slot=OWN_SLOT)
        ids: list[int] = yield from self._written(statement)
        if not ids:
            raise ClaimLost(job.id)

    def fail(
        self, job: Job, error: BaseException | str, *, retryable: bool, delay: timedelta | float | None
    ) -> Flow[FailedJob]:
        failure = failure_of(error)
        wanted = error.delay if isinstance(error, Retry) and delay is None else delay
        policy, own_delay = yield from self._policy(job, error)
        decision = decide_after_failure(
            FailureKind.ERROR if retryable and not isinstance(error, NonRetryable) else FailureKind.NON_RETRYABLE,
            attempts=job.attempts,
            max_attempts=job.max_attempts,
            losses=job.losses,
            suspect=job.suspect,
            policy=policy,
            random=self._random,
            delay=own_delay if wanted is None else checked_delay(wanted).total_seconds(),
        )
        match decision:
            case Reschedule():
                return (yield from self._rescheduled(job, failure, decision))
            case Bury():
                return (yield from self._buried(job, failure, decision))

    def release(self, job: Job) -> Flow[None]:
        decision = Reschedule(Outcome.RELEASED, charge=0, delay=None, suspect=job.suspect)
        yield from self._rescheduled(job, None, decision)

    def _policy(self, job: Job, error: BaseException | str) -> Flow[tuple[RetryPolicy, float | None]]:
        """The handler's policy where this process knows it, else what its workers announced."""
        handler = self._registry.get(job.type)
        if handler is not None:
            wished = handler.wished_delay(job.attempt, error) if isinstance(error, BaseException) else None
            return handler.policy, wished
        row = yield from self._announced.find(job.type)
        return (RetryPolicy() if row is None else RetryPolicy(row.backoff_base, row.backoff_cap)), None

    def _rescheduled(self, job: Job, failure: Failure | None, decision: Reschedule) -> Flow[FailedJob]:
        back = RescheduledJob(
            id=job.id,
            token=_token(job),
            worker_id=self._worker_id,
            started=None,
            finished=None,
            outcome=decision.outcome,
            charge=decision.charge,
            delay=decision.delay,
            error=None if failure is None else failure.error,
            error_class=None if failure is None else failure.error_class,
            traceback=None if failure is None else failure.traceback,
            loss=decision.loss,
            suspect=decision.suspect,
        )
        statement = self._queries.reschedule_jobs([back], slot=OWN_SLOT)
        rows: list[RescheduledRow] = yield from self._written(statement)
        if not rows:
            raise ClaimLost(job.id)
        return FailedJob(retry_at=rows[0].retry_at)

    def _buried(self, job: Job, failure: Failure, decision: Bury) -> Flow[FailedJob]:
        letter = BuriedJob(
            id=job.id,
            token=_token(job),
            worker_id=self._worker_id,
            started=None,
            finished=None,
            reason=decision.reason,
            charge=decision.charge,
            error=failure.error,
            error_class=failure.error_class,
            traceback=failure.traceback,
            fingerprint=failure.fingerprint(job.type),
        )
        statement = self._queries.bury_jobs([letter], slot=OWN_SLOT)
        rows: list[BuriedRow] = yield from self._written(statement)
        if not rows:
            raise ClaimLost(job.id)
        return FailedJob(dead_letter_id=rows[0].dead_letter_id)

    def _written(self, statement: Statement[Any]) -> Flow[list[Any]]:
        """Runs a statement that closes runs. Repeated once its day has a partition, and as the victim of a deadlock."""
        for _ in range(MAX_TRIES - 1):
            try:
                rows: list[Any] = yield Attempt(statement)
            except psycopg.errors.CheckViolation:
                yield self._queries.ensure_partitions(days_ahead=1)
            except psycopg.errors.DeadlockDetected:  # with an insert that takes over the key of this very job
                if (yield Held()):  # what else the caller's transaction has locked stays so
                    raise
            else:
                return rows
        rows = yield statement
        return rows


def _checked_types(names: object) -> list[str]:
    """Text is a sequence too, of letters that no job has for a type."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise InvalidJob("job_types", f"a {type(names).__name__} is no list of names")
    return [checked_name("job_types", name) for name in names]


def _unfit(job: Job, worker_id: str) -> BuriedJob | None:
    """The dead letter of a claimed job that must not run: no attempt is left, or nobody can read its payload."""
    data: JSON = job.data
    if isinstance(data, Unreadable):
        reason, error = DeathReason.MALFORMED, f"the payload cannot be read: {data.reason}"
    elif job.attempts >= job.max_attempts:
        reason, error = DeathReason.EXHAUSTED, job.last_error or f"all {job.max_attempts} attempts are spent"
    else:
        return None
    return BuriedJob(
        id=job.id,
        token=_token(job),
        worker_id=worker_id,
        started=None,
        finished=None,
        reason=reason,
        charge=0,
        error=error,
        fingerprint=Failure(error).fingerprint(job.type),
        ran=False,
    )


def _token(job: Job) -> int:
    if job.claim_token is None:
        raise ClaimLost(job.id)
    return job.claim_token
