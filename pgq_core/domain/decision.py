"""What happens after an attempt that did not succeed: the one decision, used by the worker and by the reaper alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from pgq_core.domain.job import DeathReason, Outcome
from pgq_core.domain.retry import RetryPolicy

MAX_LOSSES = 20
"""Deaths of a worker that nobody saw are not charged to the job, but not forgiven for ever either."""


class FailureKind(StrEnum):
    """How an attempt failed, as far as anybody saw."""

    ERROR = "error"  # the handler raised
    NON_RETRYABLE = "non_retryable"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"  # the data does not fit the handler's model
    CRASH = "crash"  # its worker was seen to die while this was its only started job
    CRASH_AMONG_OTHERS = "crash_among_others"  # its worker was seen to die with several started jobs
    VANISHED = "vanished"  # its worker is gone, nobody saw how


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Back to `jobs`. `delay` None keeps the job's place in the order; `charge` is the cost in attempts (0 or 1)."""

    outcome: Outcome
    charge: int
    delay: float | None
    loss: int = 0
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Bury:
    """To the dead letters."""

    reason: DeathReason
    charge: int


Decision = Reschedule | Bury


def decide_after_failure(
    kind: FailureKind,
    *,
    attempts: int,
    max_attempts: int,
    losses: int,
    suspect: bool,
    policy: RetryPolicy,
    random: Random,
    delay: float | None = None,
) -> Decision:
    """Decides by the row's own numbers (`attempts` charged before this one), so that no code of the job is needed.

    `delay` (seconds) overrides the policy's draw when the handler asked for one.
    """
    match kind:
        case FailureKind.NON_RETRYABLE:
            return Bury(DeathReason.NON_RETRYABLE, charge=1)
        case FailureKind.MALFORMED:
            return Bury(DeathReason.MALFORMED, charge=1)
        case FailureKind.CRASH_AMONG_OTHERS:
            return Reschedule(Outcome.LOST, charge=0, delay=None, suspect=True)
        case FailureKind.VANISHED:
            if losses + 1 >= MAX_LOSSES:
                return Bury(DeathReason.CRASH_LOOP, charge=0)
            return Reschedule(Outcome.LOST, charge=0, delay=None, loss=1, suspect=suspect)
        case FailureKind.ERROR | FailureKind.TIMEOUT | FailureKind.CRASH:
            if attempts + 1 >= max_attempts:
                return Bury(_REASON_WHEN_SPENT[kind], charge=1)
            drawn = policy.delay_seconds(attempts + 1, random) if delay is None else delay
            crashed = kind is FailureKind.CRASH
            return Reschedule(Outcome.LOST if crashed else Outcome.RETRIED, charge=1, delay=drawn, suspect=crashed)


_REASON_WHEN_SPENT = {
    FailureKind.ERROR: DeathReason.EXHAUSTED,
    FailureKind.TIMEOUT: DeathReason.TIMEOUT,
    FailureKind.CRASH: DeathReason.CRASH_LOOP,
}
