"""Statements of a claim's life: claim, finish, reschedule, bury."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Final, NamedTuple

from pgq_core.domain.job import JSON, Job, JobStatus
from pgq_core.domain.payload import Unreadable, decode_any
from pgq_core.domain.stretch import WHOLE_QUEUE, Stretch
from pgq_core.queries.arrays import Float8Array, Int8Array, PackedArray, text_literal
from pgq_core.queries.statement import QueryGroup, Statement

LEFT_BEHIND: Final = ""
"""In place of large data: no JSON text is empty."""


class ClaimedRow(NamedTuple):
    """A row as `claim_jobs` returns it; `claimed_at` is the database's clock when the claim answered.

    A tuple in the order of the statement's columns: made once per job, in a tenth of a dataclass's time. Times are
    seconds since 1970 and `data` is JSON text, since most handlers never look at the ones and decode the other once.
    Large data is LEFT_BEHIND by a worker's claim.
    """

    id: int
    queue: str
    job_type: str
    data: str | None
    idempotency_key: str | None
    priority: int
    attempts: int
    max_attempts: int
    not_before: float
    created_at: float
    claim_token: int
    timeout: timedelta | None
    losses: int
    suspect: bool
    last_error: str | None
    trace_context: JSON
    origin_job_id: int | None
    replayed_from: int | None
    claimed_at: float

    def decoded_data(self) -> JSON | Unreadable:
        """A value of its own for each caller. A payload without data counts as one with an empty object."""
        if self.data == LEFT_BEHIND:
            raise LookupError(f"the data of job {self.id} was left behind by its claim")
        return {} if self.data is None else decode_any(self.data)

    def to_job(self) -> Job:
        return Job(
            id=self.id,
            queue=self.queue,
            type=self.job_type,
            data=self.decoded_data(),
            priority=self.priority,
            status=JobStatus.RUNNING,
            attempts=self.attempts,
            max_attempts=self.max_attempts,
            not_before=datetime.fromtimestamp(self.not_before, UTC),
            created_at=datetime.fromtimestamp(self.created_at, UTC),
            idempotency_key=self.idempotency_key,
            claim_token=self.claim_token,
            timeout=self.timeout,
            losses=self.losses,
            suspect=self.suspect,
            last_error=self.last_error,
            trace_context=self.trace_context,
            origin_job_id=self.origin_job_id,
            replayed_from=self.replayed_from,
        )


class FinishedJob(NamedTuple):
    """A running job that ended for good. Times are the database's clock in seconds, None: since its claim, until now.

    `result` is JSON text or None.
    """

    id: int
    token: int
    started: float | None
    finished: float | None
    outcome: str = "succeeded"
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RescheduledJob:
    """A running job that goes back to `jobs`; see domain.decision.Reschedule. `started` None: since its claim."""

    id: int
    token: int
    worker_id: str
    started: float | None
    finished: float | None
    outcome: str
    charge: int = 0
    delay: float | None = None
    error: str | None = None
    error_class: str | None = None
    traceback: str | None = None
    loss: int = 0
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class BuriedJob:
    """A running job that becomes a dead letter; see domain.decision.Bury. `ran` False: it ends without having run."""

    id: int
    token: int
    worker_id: str
    started: float | None
    finished: float | None
    reason: str
    charge: int
    error: str
    error_class: str | None = None
    traceback: str | None = None
    fingerprint: str | None = None
    ran: bool = True

    def without_dead_letter(self) -> RescheduledJob:
        """Where no dead letter can be written at the moment. What it spent stays spent, so that it is buried later."""
        return RescheduledJob(
            self.id,
            self.token,
            self.worker_id,
            self.started,
            self.finished,
            outcome="retried" if self.charge else "lost",
            charge=self.charge,
            error=self.error,
            error_class=self.error_class,
            traceback=self.traceback,
            loss=0 if self.charge else 1,
            suspect=True,
        )


@dataclass(frozen=True, slots=True)
class RescheduledRow:
    """`retry_at` None: it was asked to stop meanwhile and ended as cancelled."""

    id: int
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class BuriedRow:
    dead_letter_id: int
    job_id: int


def in_claim_order(rows: Iterable[ClaimedRow]) -> list[ClaimedRow]:
    """Highest priority first, then due time, then id."""
    return sorted(rows, key=_claim_order)


def _claim_order(row: ClaimedRow) -> tuple[int, float, int]:
    return -row[5], row[8], row[0]


def stretch_arrays(stretches: Sequence[Stretch]) -> dict[str, PackedArray]:
    """The parameters of `claim_jobs` that say where to look."""
    after, until = zip(*stretches, strict=True)
    after_levels, after_dues, after_ids = zip(*after, strict=True)
    until_levels, until_dues, until_ids = zip(*until, strict=True)
    return {
        "after_levels": Int8Array(after_levels),
        "after_dues": Float8Array(after_dues),
        "after_ids": Int8Array(after_ids),
        "until_levels": Int8Array(until_levels),
        "until_dues": Float8Array(until_dues),
        "until_ids": Int8Array(until_ids),
    }


class ClaimQueries(QueryGroup):
    def claim_jobs(
        self,
        *,
        queue: str,
        worker_id: str,
        limit: int,
        job_types: Sequence[str] | None,
        lease: timedelta | None,
        stretches: Sequence[Stretch] = (WHOLE_QUEUE,),
        is_thorough: bool = True,
        except_jobs: Sequence[int] = (),
    ) -> Statement[ClaimedRow]:
        """Rows come in no order, see `in_claim_order`.

        `job_types` None claims any type; `lease` None means that liveness is the worker's heartbeat.

        `stretches`: where to look, in the order of the claim and apart from each other.

        `is_thorough` False: quicker beside other claims; may leave out a job that several had locked once.
        """
        return self._statement(
            "claim_jobs",
            ClaimedRow,
            queue=queue,
            worker_id=worker_id,
            limit=limit,
            job_types=None if job_types is None else text_literal(tuple(job_types)),
            lease=lease,
            is_thorough=is_thorough,
            except_jobs=Int8Array(except_jobs),
            **stretch_arrays(stretches),
        )

    def read_claimed_data(self, *, job_id: int, token: int) -> Statement[str | None]:
        return self._statement("read_claimed_data", id=job_id, token=token)

    # `slot`: the row of `job_stats` to count in; None: that of the session, which nobody else writes.

    def finish_jobs(self, jobs: Sequence[FinishedJob], *, worker_id: str, slot: int | None) -> Statement[int]:
        """Rows: the ids that were still ours. Sorted by id, so that two writers cannot wait for each other."""
        ordered = sorted(jobs, key=itemgetter(0))
        return self._statement(
            "finish_jobs",
            int,
            worker_id=worker_id,
            slot=slot,
            ids=Int8Array([j.id for j in ordered]),
            tokens=Int8Array([j.token for j in ordered]),
            started=Float8Array([j.started for j in ordered]),
            finished=Float8Array([j.finished for j in ordered]),
            outcomes=[j.outcome for j in ordered],
            results=[j.result for j in ordered],
            errors=[j.error for j in ordered],
        )

    def finish_successes(
        self,
        ids: Sequence[int],
        tokens: Sequence[int],
        started: Sequence[float],
        finished: Sequence[float],
        *,
        worker_id: str,
        slot: int,
    ) -> Statement[int]:
        """The statement of `finish_jobs`, by columns that are sorted by id, for successes that said nothing."""
        return self._statement(
            "finish_jobs",
            int,
            worker_id=worker_id,
            slot=slot,
            ids=Int8Array(ids),
            tokens=Int8Array(tokens),
            started=Float8Array(started),
            finished=Float8Array(finished),
            outcomes="{}",
            results="{}",
            errors="{}",
        )

    def reschedule_jobs(self, jobs: Sequence[RescheduledJob], *, slot: int | None) -> Statement[RescheduledRow]:
        return self._statement(
            "reschedule_jobs",
            RescheduledRow,
            slot=slot,
            ids=[j.id for j in jobs],
            tokens=[j.token for j in jobs],
            workers=[j.worker_id for j in jobs],
            started=[j.started for j in jobs],
            finished=[j.finished for j in jobs],
            outcomes=[j.outcome for j in jobs],
            charges=[j.charge for j in jobs],
            delays=[j.delay for j in jobs],
            errors=[j.error for j in jobs],
            error_classes=[j.error_class for j in jobs],
            tracebacks=[j.traceback for j in jobs],
            losses=[j.loss for j in jobs],
            suspects=[j.suspect for j in jobs],
        )

    def bury_jobs(self, jobs: Sequence[BuriedJob], *, slot: int | None) -> Statement[BuriedRow]:
        return self._statement(
            "bury_jobs",
            BuriedRow,
            slot=slot,
            ids=[j.id for j in jobs],
            tokens=[j.token for j in jobs],
            workers=[j.worker_id for j in jobs],
            started=[j.started for j in jobs],
            finished=[j.finished for j in jobs],
            reasons=[j.reason for j in jobs],
            charges=[j.charge for j in jobs],
            errors=[j.error for j in jobs],
            error_classes=[j.error_class for j in jobs],
            tracebacks=[j.traceback for j in jobs],
            fingerprints=[j.fingerprint for j in jobs],
            ran=[j.ran for j in jobs],
        )
