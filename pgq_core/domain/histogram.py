"""Percentiles from the cells of `job_stats`: 1 ms doubled 23 times, and one more cell for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BOUNDS: tuple[float, ...] = tuple(0.001 * 2**n for n in range(23))
"""Upper bounds in seconds, as `histogram_bounds()` has them in the database."""

CELLS = len(BOUNDS) + 1

Cells = Sequence[int]
EMPTY: Cells = (0,) * CELLS


def add_cells(histograms: Iterable[Cells]) -> Cells:
    """The cells of all histograms together.

    >>> add_cells([(1, 2), (3, 4)])
    (4, 6)
    """
    columns = tuple(zip(*histograms, strict=True))
    return tuple(sum(column) for column in columns) if columns else EMPTY


def percentile(cells: Cells, share: float) -> float | None:
    """The duration (seconds) that `share` of all runs did not exceed, taken as even within its cell; None without runs.

    Runs beyond the last bound (70 minutes) answer with that bound: all that is known of them is that they took longer.

    >>> percentile([0, 0, 10, 0], 0.5), percentile([0, 0, 0], 0.5)
    (0.003, None)
    """
    rank = share * sum(cells)
    if rank <= 0:
        return None
    passed = 0
    for cell, count in enumerate(cells):
        if count and passed + count >= rank:
            return _inside(cell, (rank - passed) / count)
        passed += count
    return BOUNDS[-1]


def _inside(cell: int, share: float) -> float:
    if cell >= len(BOUNDS):
        return BOUNDS[-1]
    lower = BOUNDS[cell - 1] if cell else 0.0
    return lower + (BOUNDS[cell] - lower) * share
