"""The one decision after a failed attempt, as a table."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from pgq_core.domain.decision import MAX_LOSSES, Bury, Decision, FailureKind, Reschedule, decide_after_failure
from pgq_core.domain.job import DeathReason, Outcome
from pgq_core.domain.retry import RetryPolicy

POLICY = RetryPolicy(timedelta(seconds=10), timedelta(seconds=100))


def decide(
    kind: FailureKind,
    *,
    attempts: int = 0,
    max_attempts: int = 3,
    losses: int = 0,
    suspect: bool = False,
    delay: float | None = None,
) -> Decision:
    return decide_after_failure(
        kind,
        attempts=attempts,
        max_attempts=max_attempts,
        losses=losses,
        suspect=suspect,
        policy=POLICY,
        random=Random(7),
        delay=delay,
    )


@pytest.mark.parametrize("kind", [FailureKind.ERROR, FailureKind.TIMEOUT])
def test_a_failed_attempt_is_charged_and_retried_after_the_backoff(kind: FailureKind) -> None:
    decision = decide(kind)

    assert isinstance(decision, Reschedule)
    assert (decision.outcome, decision.charge, decision.suspect) == (Outcome.RETRIED, 1, False)
    assert decision.delay is not None
    assert 0 <= decision.delay <= 20


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (FailureKind.ERROR, DeathReason.EXHAUSTED),
        (FailureKind.TIMEOUT, DeathReason.TIMEOUT),
        (FailureKind.CRASH, DeathReason.CRASH_LOOP),
    ],
)
@pytest.mark.parametrize(("attempts", "max_attempts"), [(2, 3), (0, 1), (7, 3)])
def test_the_last_attempt_ends_in_the_dead_letters(
    kind: FailureKind, reason: DeathReason, attempts: int, max_attempts: int
) -> None:
    assert decide(kind, attempts=attempts, max_attempts=max_attempts) == Bury(reason, charge=1)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(FailureKind.NON_RETRYABLE, DeathReason.NON_RETRYABLE), (FailureKind.MALFORMED, DeathReason.MALFORMED)],
)
def test_what_can_never_succeed_is_buried_at_once(kind: FailureKind, reason: DeathReason) -> None:
    assert decide(kind) == Bury(reason, charge=1)


def test_a_crash_of_the_only_started_job_is_charged_to_it() -> None:
    decision = decide(FailureKind.CRASH)

    assert isinstance(decision, Reschedule)
    assert (decision.outcome, decision.charge, decision.suspect) == (Outcome.LOST, 1, True)


def test_a_crash_among_others_is_charged_to_nobody_and_makes_suspects() -> None:
    expected = Reschedule(Outcome.LOST, charge=0, delay=None, suspect=True)

    assert decide(FailureKind.CRASH_AMONG_OTHERS, attempts=2, max_attempts=3) == expected


def test_an_unseen_death_is_not_charged_but_counted() -> None:
    assert decide(FailureKind.VANISHED, attempts=2) == Reschedule(Outcome.LOST, charge=0, delay=None, loss=1)
    assert decide(FailureKind.VANISHED, suspect=True) == Reschedule(
        Outcome.LOST, charge=0, delay=None, loss=1, suspect=True
    )
    assert decide(FailureKind.VANISHED, losses=MAX_LOSSES - 1) == Bury(DeathReason.CRASH_LOOP, charge=0)


def test_a_wished_delay_wins_over_the_draw() -> None:
    decision = decide(FailureKind.ERROR, delay=0.0)

    assert isinstance(decision, Reschedule)
    assert decision.delay == 0.0


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_has_a_decision(kind: FailureKind) -> None:
    assert isinstance(decide(kind), Reschedule | Bury)
