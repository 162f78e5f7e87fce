"""A running job that has lost its worker, and the write that its fate becomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pgq_core.domain.decision import Bury, Decision, Reschedule
from pgq_core.domain.fingerprint import fingerprint
from pgq_core.domain.retry import RetryPolicy
from pgq_core.queries.claims import BuriedJob, RescheduledJob


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """All that is needed to decide about it: no code of the job, only its own numbers and what workers announced."""

    id: int
    claim_token: int
    """0: the row was made by hand, and lacks its token or the time of its claim; no write would match it."""
    worker_id: str
    queue: str
    job_type: str
    attempts: int
    max_attempts: int
    losses: int
    suspect: bool
    backoff_base: float | None
    backoff_cap: float | None

    @property
    def policy(self) -> RetryPolicy:
        if not self.backoff_base or not self.backoff_cap:
            return RetryPolicy()
        return RetryPolicy(timedelta(seconds=self.backoff_base), timedelta(seconds=self.backoff_cap))

    def closed(self, decision: Decision, *, error: str, error_class: str | None) -> RescheduledJob | BuriedJob:
        """The write that carries out `decision`; the attempt counts from the claim until now."""
        match decision:
            case Reschedule():
                return RescheduledJob(
                    id=self.id,
                    token=self.claim_token,
                    worker_id=self.worker_id,
                    started=None,
                    finished=None,
                    outcome=decision.outcome,
                    charge=decision.charge,
                    delay=decision.delay,
                    error=error,
                    error_class=error_class,
                    loss=decision.loss,
                    suspect=decision.suspect,
                )
            case Bury():
                return BuriedJob(
                    id=self.id,
                    token=self.claim_token,
                    worker_id=self.worker_id,
                    started=None,
                    finished=None,
                    reason=decision.reason,
                    charge=decision.charge,
                    error=error,
                    error_class=error_class,
                    fingerprint=fingerprint(self.job_type, error_class, error, None),
                )
