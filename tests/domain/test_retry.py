"""Backoff with full jitter: bounds, spread, mean."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from statistics import fmean

import pytest

from pgq_core.domain.retry import RetryPolicy

ATTEMPTS = range(1, 1001)


def test_the_same_schedule_computed_twice_differs() -> None:
    policy = RetryPolicy()
    random = Random(1)

    first = [policy.delay_seconds(attempt, random) for attempt in ATTEMPTS]
    second = [policy.delay_seconds(attempt, random) for attempt in ATTEMPTS]

    assert first != second
    assert len(set(first + second)) == 2000


@pytest.mark.parametrize(
    ("base", "cap"),
    [
        (timedelta(seconds=1), timedelta(hours=1)),
        (timedelta(microseconds=1), timedelta(hours=1)),
        (timedelta(microseconds=1), timedelta(microseconds=1)),
        (timedelta(days=365), timedelta(days=3650)),
        (timedelta(days=3650), timedelta(seconds=1)),
    ],
)
def test_every_delay_stays_inside_its_bounds_without_overflow(base: timedelta, cap: timedelta) -> None:
    policy = RetryPolicy(base, cap)
    random = Random(2)

    for attempt in ATTEMPTS:
        ceiling = min(cap.total_seconds(), base.total_seconds() * 2.0 ** min(attempt, 900))
        assert policy.ceiling(attempt).total_seconds() == pytest.approx(ceiling, rel=1e-6, abs=1e-6)
        assert 0 <= policy.delay_seconds(attempt, random) <= policy.ceiling(attempt).total_seconds()
        assert isinstance(policy.delay(attempt, random), timedelta)


def test_the_mean_delay_is_half_the_ceiling_at_each_attempt() -> None:
    policy = RetryPolicy()
    random = Random(3)

    for attempt in [*range(1, 14), 100, 1000]:
        mean = fmean(policy.delay_seconds(attempt, random) for _ in range(4000))
        assert mean == pytest.approx(policy.ceiling(attempt).total_seconds() / 2, rel=0.05)


def test_the_first_retry_comes_within_two_seconds_and_none_after_an_hour() -> None:
    policy = RetryPolicy()

    assert policy.ceiling(1) == timedelta(seconds=2)
    assert policy.ceiling(11) == timedelta(seconds=2048)
    assert policy.ceiling(12) == policy.ceiling(10**9) == timedelta(hours=1)


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (1, 0)])
def test_a_policy_without_time_is_refused(base: int, cap: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        RetryPolicy(timedelta(seconds=base), timedelta(seconds=cap))
