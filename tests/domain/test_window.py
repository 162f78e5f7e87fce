from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgq_core.domain.window import MOST_POINTS, WINDOWS, bucket_start, bucket_starts, bucket_step

NOON = datetime(2026, 3, 4, 12, 0, 3, tzinfo=UTC)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=list(WINDOWS))
def test_no_window_has_more_points_than_a_screen_can_show(window: timedelta) -> None:
    assert window / bucket_step(window) <= MOST_POINTS


def test_a_bucket_starts_at_a_multiple_of_its_step() -> None:
    assert bucket_start(NOON, timedelta(seconds=5)) == NOON.replace(second=0)
    assert bucket_start(NOON, timedelta(hours=1)) == NOON.replace(second=0)
    assert bucket_start(NOON.replace(second=5), timedelta(seconds=5)) == NOON.replace(second=5)


def test_buckets_cover_a_span_without_a_gap() -> None:
    starts = bucket_starts(NOON - timedelta(seconds=12), NOON, timedelta(seconds=5))

    assert starts == [NOON.replace(second=0) + timedelta(seconds=s) for s in (-10, -5, 0)]
