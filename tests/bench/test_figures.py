"""Percentiles, schedules, the search for a capacity: the arithmetic that every figure rests on."""

from __future__ import annotations

import doctest
import importlib
import random

import pytest

from pgq_core.bench.capacity import find_capacity
from pgq_core.bench.figures import Spread, growth, percentile, percentiles_of
from pgq_core.bench.schedule import Schedule


@pytest.mark.parametrize(
    "module", ["figures", "schedule", "options", "capacity", "fleet", "draining", "svg"], ids=lambda name: name
)
def test_examples_in_the_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"pgq_core.bench.{module}"))

    assert results.attempted > 0
    assert results.failed == 0


def test_percentile_is_a_value_that_was_seen() -> None:
    values = sorted(random.Random(7).uniform(0, 1) for _ in range(997))

    for share in (0.001, 0.5, 0.95, 0.99, 1.0):
        found = percentile(values, share)
        assert found in values
        assert sum(value <= found for value in values) >= share * len(values)


def test_no_values_have_no_percentiles() -> None:
    assert percentiles_of([], "start") == {}


def test_spread_of_one_round_shows_no_range() -> None:
    assert str(Spread.of([812.0])) == "812"
    assert str(Spread.of([3.0, 1.0, 2.0])) == "2.00 (1.00–3.00)"


def test_growth_of_a_noisy_level_is_none() -> None:
    noise = random.Random(3)

    assert abs(growth([(second / 10, 100 + noise.uniform(-5, 5)) for second in range(600)])) < 2
    assert growth([(1.0, 5.0)]) == 0


def test_schedule_sends_every_job_once_and_at_a_time_fixed_in_advance() -> None:
    schedule = Schedule(rate=1234.5, seconds=3.0)

    batches = list(schedule.batches())

    assert [number for batch in batches for number in range(batch.first, batch.stop)] == list(range(schedule.jobs))
    assert schedule.jobs == pytest.approx(1234.5 * 3, abs=1)
    assert all(batch.at == pytest.approx(batch.first / 1234.5, abs=0.011) for batch in batches)


def test_several_producers_share_a_schedule_without_gap_or_overlap() -> None:
    schedule = Schedule(rate=990.0, seconds=1.0)

    parts = [list(schedule.batches(producer=number, producers=3)) for number in range(3)]

    assert sorted(batch for part in parts for batch in part) == list(schedule.batches())
    assert all(parts)


def test_a_slow_rate_leaves_ticks_empty() -> None:
    assert [batch.at for batch in Schedule(rate=2, seconds=1.0).batches()] == [0.49, 0.99]


@pytest.mark.parametrize("start", [10.0, 900.0, 40_000.0])
def test_capacity_is_found_from_any_first_guess(start: float) -> None:
    tried: list[float] = []

    def holds(rate: float, seconds: float) -> bool:
        tried.append(seconds)
        return rate <= 1000

    found = find_capacity(holds, start)

    assert 940 <= found <= 1000
    assert tried[-1] == 60
    assert tried.count(60) == 1


def test_capacity_that_fails_the_long_trial_is_lowered() -> None:
    found = find_capacity(lambda rate, seconds: rate <= (1000 if seconds == 10 else 900), 500)

    assert 850 <= found <= 900
