"""The body of a chart as rows of cells: which sign stands where, in which meaning. No colours, no widgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pgq_tui.view_model.chart_data import ChartData, ChartSeries
from pgq_tui.view_model.chart_scale import Grid, ValueAxis, column_values

EIGHTHS = "▁▂▃▄▅▆▇"
_PER_ROW = 8
_HALF = 4
_CALM = 0.75
_STROKES = {"flat": "─", "upright": "│", "leave_up": "╯", "reach_up": "╭", "leave_down": "╮", "reach_down": "╰"}
_ASCII_STROKES = {"flat": "-", "upright": "|", "leave_up": "'", "reach_up": ".", "leave_down": ".", "reach_down": "'"}


class Cell(NamedTuple):
    """One sign; `ink` and `ground` are indexes of series, None is the surface. `line` numbers a drawn-over line."""

    char: str = " "
    ink: int | None = None
    ground: int | None = None
    line: int | None = None


BLANK = Cell()


class Piece(NamedTuple):
    """The part of one series in one cell, in eighths from the lower edge of the cell."""

    series: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many eighths of the cell it takes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Inks:
    """What may be drawn with: two colours in a cell, Unicode blocks, or neither."""

    has_colour: bool = True
    is_ascii: bool = False


def draw_stack(data: ChartData, grid: Grid, axis: ValueAxis, inks: Inks) -> list[list[Cell]]:
    """The stacked series as rows of cells, the top row first."""
    columns = stack_edges(data, grid, axis)
    return [[_stack_cell(edges, row, data.series, inks) for edges in columns] for row in range(axis.rows - 1, -1, -1)]


def stack_edges(data: ChartData, grid: Grid, axis: ValueAxis) -> list[list[int]]:
    """For each column the upper edge of every series in eighths of a row; empty where nothing is known.

    A value above zero takes at least one eighth: one failure in a thousand has to be seen.
    """
    if not data.series:  # a chart of lines alone
        return [[] for _ in range(grid.columns)]
    starts = [at.timestamp() for at in data.times]
    bucket = data.bucket.total_seconds()
    values = [column_values(starts, bucket, series.values, grid) for series in data.series]
    scale = axis.rows * _PER_ROW / axis.top if axis.top > 0 else 0.0
    return [_column_edges(column, scale, axis.rows * _PER_ROW) for column in zip(*values, strict=True)]


def _column_edges(column: Sequence[float | None], scale: float, highest: int) -> list[int]:
    if all(value is None for value in column):
        return []
    edges: list[int] = []
    total, edge = 0.0, 0
    for value in column:
        total += max(value or 0.0, 0.0)
        edge = max(round(total * scale), edge + (1 if value and value > 0 else 0))
        edges.append(min(edge, highest))
    return edges


def _stack_cell(edges: Sequence[int], row: int, series: Sequence[ChartSeries], inks: Inks) -> Cell:
    pieces = _pieces(edges, row * _PER_ROW)
    if not pieces:
        return BLANK
    filled = pieces[-1].end
    if len(pieces) == 1 and filled == _PER_ROW:
        return _filled(pieces[0].series, series, inks)
    if inks.has_colour and not inks.is_ascii:
        return _two_coloured(pieces, filled)
    return _majority(pieces, filled, series, inks)


def _pieces(edges: Sequence[int], base: int) -> list[Piece]:
    """The series that have a part in the row whose lower edge is at `base`, lowest first."""
    pieces: list[Piece] = []
    lower = 0
    for index, upper in enumerate(edges):
        start, end = max(lower - base, 0), min(upper - base, _PER_ROW)
        if end > start:
            pieces.append(Piece(index, start, end))
        lower = upper
    return pieces


def _filled(index: int, series: Sequence[ChartSeries], inks: Inks) -> Cell:
    one = series[index]
    return Cell(one.ascii_fill if inks.is_ascii else one.fill, index, index)


def _two_coloured(pieces: Sequence[Piece], filled: int) -> Cell:
    """A cell has room for two colours: its lowest series, and the larger of what lies above."""
    lowest = pieces[0]
    above = max(pieces[1:], key=lambda piece: piece.size, default=None)
    empty = _PER_ROW - filled
    if above is None or empty > above.size:
        # The surface takes the upper part; the largest series gives the lower part its colour.
        return Cell(EIGHTHS[filled - 1], max(pieces, key=lambda piece: piece.size).series)
    return Cell(EIGHTHS[lowest.end - 1], lowest.series, above.series)


def _majority(pieces: Sequence[Piece], filled: int, series: Sequence[ChartSeries], inks: Inks) -> Cell:
    largest = max(pieces, key=lambda piece: piece.size).series
    if filled == _PER_ROW:
        return _filled(largest, series, inks)
    if not inks.is_ascii and len(pieces) == 1 and series[largest].fill == "█":
        return Cell(EIGHTHS[filled - 1], largest)
    # The lowest row is never left empty, so that little does not look like nothing.
    is_shown = filled >= _HALF or pieces[0].start == 0
    return _filled(largest, series, inks) if is_shown else BLANK


def draw_line(
    cells: list[list[Cell]], data: ChartData, number: int, *, grid: Grid, axis: ValueAxis, inks: Inks
) -> None:
    """Lay line `number` of the data over the cells, one joined stroke as far as values are known."""
    starts = [at.timestamp() for at in data.times]
    values = column_values(starts, data.bucket.total_seconds(), data.lines[number].values, grid)
    signs = _ASCII_STROKES if inks.is_ascii else _STROKES
    for (row, column), stroke in _strokes(line_rows(values, axis)):
        below = cells[axis.rows - 1 - row][column]
        cells[axis.rows - 1 - row][column] = Cell(signs[stroke], below.ink, _ground_under(below, inks), number)


def line_rows(values: Sequence[float | None], axis: ValueAxis) -> list[int | None]:
    """The row of a line in each column, the lowest is 0; noise of less than a row does not make it jump.

    >>> line_rows([1.0, 11.0, 9.0, None, 100.0], ValueAxis(50.0, 5, ()))
    [0, 0, 0, None, 4]
    """
    rows: list[int | None] = []
    for value in values:
        if value is None or axis.top <= 0:
            rows.append(None)
            continue
        exact = value / axis.top * axis.rows
        before = rows[-1] if rows else None
        stays = before is not None and abs(exact - before - 0.5) <= _CALM
        rows.append(before if stays else min(max(int(exact), 0), axis.rows - 1))
    return rows


def _strokes(rows: Sequence[int | None]) -> Iterator[tuple[tuple[int, int], str]]:
    """Places (row, column) of the stroke with the kind of each piece; a step is drawn in the column it leads to."""
    before: int | None = None
    for column, row in enumerate(rows):
        if row is not None:
            if before is None or before == row:
                yield (row, column), "flat"
            else:
                yield (before, column), "leave_up" if row > before else "leave_down"
                yield (row, column), "reach_up" if row > before else "reach_down"
                for between in range(min(row, before) + 1, max(row, before)):
                    yield (between, column), "upright"
        before = row


def _ground_under(below: Cell, inks: Inks) -> int | None:
    """What shows behind a stroke: the series that fills more than half of the cell."""
    if inks.is_ascii or not inks.has_colour:
        return None
    if below.ground is not None or below.ink is None:
        return below.ground
    return below.ink if below.char in EIGHTHS[_HALF:] else None


def highest_value(data: ChartData, grid: Grid) -> float:
    """The highest stack or line that the picture will show."""
    starts = [at.timestamp() for at in data.times]
    bucket = data.bucket.total_seconds()
    stacks = [column_values(starts, bucket, series.values, grid) for series in data.series]
    totals = [sum(max(value or 0.0, 0.0) for value in column) for column in zip(*stacks, strict=True)]
    lines = [column_values(starts, bucket, line.values, grid) for line in data.lines]
    return max([*totals, *(value for line in lines for value in line if value is not None)], default=0.0)
