"""The arithmetic of a chart: round axes, round clock times, and values per column that stand still."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import NamedTuple

_ROUND_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 10.0)
_ROWS_BETWEEN_TICKS = (2, 3, 4, 5)
_FEWEST_TICKS, _MOST_TICKS = 2, 6
_LEAST_TOP = 1e-6
_MINUTE, _DAY = 60, 86_400
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, _DAY)
_LABEL_GAP = 7


class AxisTick(NamedTuple):
    """A labelled row of the value axis, counted from the base line: row 3 is reached by a stack three rows high."""

    row: int
    label: str


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """A value axis from zero: `top` is the value at the upper edge of the last row."""

    top: float
    rows: int
    ticks: tuple[AxisTick, ...]


def value_axis(highest: float, rows: int) -> ValueAxis:
    """The axis that wastes least of the rows and still has round labels on whole rows.

    >>> axis = value_axis(44, 10)
    >>> axis.top, [tick.label for tick in axis.ticks]
    (50.0, ['0', '10', '20', '30', '40', '50'])
    >>> value_axis(0, 4).top, value_axis(0.07, 6).ticks[1].label, value_axis(7, 1).top
    (1.0, '0.025', 8.0)
    """
    if rows <= 0:
        return ValueAxis(max(highest, 1.0), 0, ())
    if not math.isfinite(highest) or highest < _LEAST_TOP:
        highest = 1.0
    step, spacing = min(_candidates(highest, rows), key=lambda pair: (pair[0] / pair[1], pair[1]))
    return ValueAxis(step * rows / spacing, rows, _value_ticks(step, spacing, rows))


def _candidates(highest: float, rows: int) -> list[tuple[float, int]]:
    """Steps between ticks and the rows they take, each reaching at least as high as `highest`."""
    spacings = [s for s in _ROWS_BETWEEN_TICKS if _FEWEST_TICKS <= rows // s <= _MOST_TICKS] or [rows]
    pairs = []
    for spacing in spacings:
        least = highest * spacing / rows
        decade = 10.0 ** math.floor(math.log10(least))
        step = next((decade * s for s in _ROUND_STEPS if decade * s >= least * (1 - 1e-9)), decade * 10)
        pairs.append((step, spacing))
    return pairs


def _value_ticks(step: float, spacing: int, rows: int) -> tuple[AxisTick, ...]:
    decimals = _decimals(step)
    return tuple(AxisTick(row, _tick_label(step * (row // spacing), decimals)) for row in range(0, rows + 1, spacing))


def _decimals(step: float) -> int:
    """Digits behind the point that every multiple of the step needs."""
    for digits in range(7):
        if abs(round(step, digits) - step) < step * 1e-6:
            return digits
    return 7


def _tick_label(value: float, decimals: int) -> str:
    if value == 0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 10 or (value >= size and decimals == 0 and value % 100 == 0):
            return f"{value / size:.1f}".removesuffix(".0") + letter
    return f"{value:.{decimals}f}"


class TimeTick(NamedTuple):
    """A labelled column of the time axis."""

    column: int
    label: str


def time_ticks(start: float, end: float, columns: int, zone: tzinfo | None) -> list[TimeTick]:
    """Round clock times under the columns, as many as have room.

    >>> from datetime import UTC
    >>> [tuple(tick) for tick in time_ticks(1_772_366_700, 1_772_367_600, 61, UTC)]
    [(0, '12:05'), (20, '12:10'), (40, '12:15')]
    """
    if columns <= 0 or end <= start:
        return []
    per_column = (end - start) / columns
    step = next((s for s in _CLOCK_STEPS if s / per_column >= _label_width(s) + _LABEL_GAP), None)
    if step is None:
        step = _DAY * math.ceil((_label_width(_DAY) + _LABEL_GAP) * per_column / _DAY)
    shift = _zone_offset(start, zone)
    ticks = []
    moment = math.ceil((start + shift) / step) * step - shift
    while moment < end:
        column = int((moment - start) / per_column)
        label = _clock_label(moment, step, zone)
        if column + len(label) <= columns:
            ticks.append(TimeTick(column, label))
        moment += step
    return ticks


def _label_width(step: int) -> int:
    return len("12:04:31") if step < _MINUTE else len("12:04")


def _clock_label(moment: float, step: int, zone: tzinfo | None) -> str:
    at = datetime.fromtimestamp(moment, zone)
    if step >= _DAY:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step < _MINUTE else f"{at:%H:%M}"


def _zone_offset(moment: float, zone: tzinfo | None) -> float:
    offset = datetime.fromtimestamp(moment, zone).astimezone(zone).utcoffset()
    return offset.total_seconds() if offset else 0.0


class Grid(NamedTuple):
    """The columns of a chart as stretches of time whose edges are whole multiples of their length.

    So a column covers the same seconds in every repaint, and the picture moves by whole columns without flicker.
    """

    start: float
    per_column: float
    columns: int

    @property
    def end(self) -> float:
        """The moment at the right edge."""
        return self.start + self.per_column * self.columns

    def column_of(self, moment: float) -> int | None:
        """The column that holds a moment, None outside the picture."""
        column = math.floor((moment - self.start) / self.per_column)
        return column if 0 <= column < self.columns else None


def time_grid(end: float, window: float, columns: int, *, phase: float = 0.0) -> Grid:
    """The grid of `columns` columns that ends with the column holding `end`; one of its edges is at `phase`.

    >>> time_grid(1000.0, 100.0, 10), time_grid(1004.0, 100.0, 10).start, time_grid(1004.0, 100.0, 10, phase=3).start
    (Grid(start=900.0, per_column=10.0, columns=10), 910.0, 913.0)
    """
    per_column = max(window, 1e-3) / max(columns, 1)
    last = math.ceil((end - phase) / per_column - 1e-6)
    return Grid((last - columns) * per_column + phase, per_column, columns)


def column_values(
    starts: Sequence[float], bucket: float, values: Sequence[float | None], grid: Grid
) -> list[float | None]:
    """The mean of each column, weighted by the time each bucket has in it; None where nothing is known.

    >>> column_values([0, 5, 10], 5, [2.0, 4.0, None], Grid(0, 2.5, 8))
    [2.0, 2.0, 4.0, 4.0, None, None, None, None]
    >>> column_values([0, 5, 10], 5, [2.0, 4.0, 6.0], Grid(-10, 10, 3))
    [None, 3.0, 6.0]
    """
    sums = [0.0] * grid.columns
    weights = [0.0] * grid.columns
    for start, value in zip(starts, values, strict=False):
        if value is None or not math.isfinite(value):
            continue
        first = max(0, math.floor((start - grid.start) / grid.per_column))
        last = min(grid.columns - 1, math.floor((start + bucket - grid.start) / grid.per_column))
        for column in range(first, last + 1):
            left = grid.start + column * grid.per_column
            overlap = min(start + bucket, left + grid.per_column) - max(start, left)
            if overlap > grid.per_column * 1e-6:
                sums[column] += value * overlap
                weights[column] += overlap
    return [total / weight if weight else None for total, weight in zip(sums, weights, strict=True)]
