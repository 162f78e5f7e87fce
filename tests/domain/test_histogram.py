from __future__ import annotations

from random import Random

import pytest

from pgq_core.domain.histogram import BOUNDS, CELLS, EMPTY, add_cells, percentile


def cells_of(durations: list[float]) -> list[int]:
    cells = [0] * CELLS
    for duration in durations:
        cells[sum(1 for bound in BOUNDS if duration >= bound)] += 1
    return cells


def test_no_runs_have_no_percentile() -> None:
    assert percentile(EMPTY, 0.5) is None
    assert percentile([], 0.5) is None


def test_percentile_is_never_off_by_more_than_the_cell_it_lies_in() -> None:
    random = Random(7)
    durations = sorted(random.lognormvariate(-2, 1.5) for _ in range(5000))
    cells = cells_of(durations)

    for share in (0.05, 0.5, 0.95, 0.99):
        exact = durations[int(share * len(durations)) - 1]
        found = percentile(cells, share)
        assert found is not None
        assert exact / 2 <= found <= exact * 2


def test_percentiles_grow_with_the_share() -> None:
    cells = cells_of([0.0005, 0.003, 0.05, 1.5, 90.0])

    found = [percentile(cells, share / 20) or 0.0 for share in range(1, 21)]

    assert found == sorted(found)


def test_runs_beyond_the_last_bound_answer_with_it() -> None:
    assert percentile(cells_of([1e6]), 0.5) == BOUNDS[-1]


def test_cells_of_several_histograms_add_up() -> None:
    one, two = cells_of([0.01, 0.02]), cells_of([0.01])

    assert list(add_cells([one, two])) == cells_of([0.01, 0.01, 0.02])
    assert add_cells([]) == EMPTY


@pytest.mark.parametrize("share", [0.0, -1.0])
def test_a_share_of_nothing_has_no_percentile(share: float) -> None:
    assert percentile(cells_of([0.1]), share) is None
