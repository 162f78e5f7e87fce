"""A chart laid out and painted for one size: axis, plot, marks, clock, time cursor, as strips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.strip import Strip

from pgq_tui.view_model.chart_canvas import Cell, Inks, draw_line, draw_stack, highest_value
from pgq_tui.view_model.chart_data import ChartData
from pgq_tui.view_model.chart_scale import ValueAxis, time_grid, time_ticks, value_axis
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.chart_paint import ChartPaint

_ROWS_FOR_CLOCK, _ROWS_FOR_BASE_LINE, _ROWS_FOR_MARKS = 4, 6, 8
_COLUMNS_FOR_AXIS = 16
_KEEP_AXIS_DOWN_TO = 0.5
"""The axis stays while the picture fills at least this part of it: numbers that jump cannot be read."""
_LONGEST_MARK = 28
_LEAST_LABEL = 2

Line = list[tuple[str, Style]]
"""One row as signs with their styles, one entry per cell."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the chart is drawn on and with."""

    palette: Palette
    glyphs: Glyphs
    surface: Color

    def style(self, token: Token) -> Style:
        """The style of a token."""
        return self.palette.style(token)


class ChartPicture:
    """One drawing of one chart; `axis_before` is kept while it suits, so that the scale stands still."""

    def __init__(
        self,
        data: ChartData,
        size: Size,
        around: Surroundings,
        *,
        cursor: datetime | None = None,
        axis_before: ValueAxis | None = None,
    ) -> None:
        self._data = data
        self._around = around
        self._cursor = cursor
        rows = size.height - self._rows_below(size.height)
        self._has_marks = size.height >= _ROWS_FOR_MARKS and bool(data.marks)
        plot_rows = max(rows - self._has_marks, 1)
        window = data.window.total_seconds()
        # The axis is as wide as its labels, and its labels depend on the values that the other columns show.
        guess = max(size.width - _COLUMNS_FOR_AXIS // 2, 1)
        rough = highest_value(data, time_grid(data.end, window, guess, phase=data.phase))
        self.axis = _steady_axis(rough, plot_rows, axis_before)
        self.gutter = self._gutter_width(size.width)
        self.grid = time_grid(data.end, window, max(size.width - self.gutter, 1), phase=data.phase)
        self._height = size.height
        self._paint = ChartPaint(data, around.palette, around.surface, plot_rows)

    def strips(self) -> list[Strip]:
        """The rows from top to bottom."""
        lines = self._plot_lines()
        if self._has_marks:
            lines.insert(0, self._mark_line(lines))
        if self._height >= _ROWS_FOR_BASE_LINE:
            lines.append(self._base_line())
        if self._height >= _ROWS_FOR_CLOCK:
            lines.append(self._clock_line())
        return [_strip(line) for line in lines]

    @staticmethod
    def _rows_below(height: int) -> int:
        return (height >= _ROWS_FOR_BASE_LINE) + (height >= _ROWS_FOR_CLOCK)

    def _gutter_width(self, width: int) -> int:
        if width < _COLUMNS_FOR_AXIS:
            return 0
        return max((len(tick.label) for tick in self.axis.ticks), default=_LEAST_LABEL) + 1

    def _plot_lines(self) -> list[Line]:
        glyphs, palette = self._around.glyphs, self._around.palette
        inks = Inks(has_colour=palette.has_colour, is_ascii=glyphs.is_ascii)
        cells = draw_stack(self._data, self.grid, self.axis, inks)
        for number in range(len(self._data.lines)):
            draw_line(cells, self._data, number, grid=self.grid, axis=self.axis, inks=inks)
        labels = {tick.row: tick.label for tick in self.axis.ticks}
        marked = self.grid.column_of(self._cursor.timestamp()) if self._cursor else None
        lines: list[Line] = []
        for index, row_cells in enumerate(cells):
            row = self.axis.rows - index  # The row of the axis that a stack filling this line reaches.
            line = self._gutter(labels.get(row, ""), is_tick=row in labels)
            line += [self._cell(cell, row - 1, is_grid=row in labels) for cell in row_cells]
            if marked is not None:
                line[self.gutter + marked] = self._cursor_sign(row_cells[marked], row - 1)
            lines.append(line)
        return lines

    def _gutter(self, label: str, *, is_tick: bool, joint: str = "┤", plain: str = "│") -> Line:
        if not self.gutter:
            return []
        sign = joint if is_tick else plain
        if self._around.glyphs.is_ascii:
            sign = "+" if is_tick else "|"
        labels = _spread(label.rjust(self.gutter - 1), self._around.style(Token.DIM))
        return [*labels, (sign, self._around.style(Token.FAINT))]

    def _cell(self, cell: Cell, row: int, *, is_grid: bool) -> tuple[str, Style]:
        if cell.ink is None and cell.line is None:
            sign = ("." if self._around.glyphs.is_ascii else "┈") if is_grid else " "
            return sign, self._around.style(Token.FAINT)
        return cell.char, self._paint.style(cell, row)

    def _cursor_sign(self, cell: Cell, row: int) -> tuple[str, Style]:
        colour = self._around.style(Token.TEXT).color
        sign = "|" if self._around.glyphs.is_ascii else "│"
        return sign, Style(color=colour, bgcolor=self._paint.under(cell, row), bold=True)

    def _mark_line(self, plot: list[Line]) -> Line:
        """The marks above the plot, each with its label where there is room, and a thread down to the values."""
        glyphs = self._around.glyphs
        line: Line = [*self._gutter("", is_tick=False), *[(" ", Style())] * self.grid.columns]
        free_from = self.gutter
        for mark in sorted(self._data.marks, key=lambda mark: mark.at):
            column = self.grid.column_of(mark.at.timestamp())
            if column is None:
                continue
            style = self._around.style(mark.token)
            label = glyphs.up + one_line(mark.label, _LONGEST_MARK, glyphs=glyphs)
            start = min(self.gutter + column, len(line) - len(label))
            if start < free_from:
                label, start = glyphs.up, self.gutter + column
            line[start : start + len(label)] = _spread(label, style)
            # A label moved in from the right edge still has its sign above the moment.
            free_from = max(free_from, start + len(label) + 1)
            self._thread(plot, self.gutter + column, style)
        return line

    def _thread(self, plot: list[Line], column: int, style: Style) -> None:
        for line in plot:
            sign, _ = line[column]
            if sign in {" ", "┈", "."}:
                line[column] = ("." if self._around.glyphs.is_ascii else "┊", style)

    def _base_line(self) -> Line:
        faint = self._around.style(Token.FAINT)
        is_ascii = self._around.glyphs.is_ascii
        line = self._gutter("0", is_tick=True, joint="└")
        line += [("-" if is_ascii else "─", faint)] * self.grid.columns
        for column, _ in self._clock_ticks():
            line[self.gutter + column] = ("+" if is_ascii else "┬", faint)
        return line

    def _clock_line(self) -> Line:
        dim = self._around.style(Token.DIM)
        line: Line = [(" ", dim)] * (self.gutter + self.grid.columns)
        for column, label in self._clock_ticks():
            start = self.gutter + column
            line[start : start + len(label)] = _spread(label, dim)
        return line

    def _clock_ticks(self) -> Iterable[tuple[int, str]]:
        grid = self.grid
        return time_ticks(grid.start, grid.end, grid.columns, self._data.now.tzinfo)


def _steady_axis(highest: float, rows: int, before: ValueAxis | None) -> ValueAxis:
    if before and before.rows == rows and before.top * _KEEP_AXIS_DOWN_TO <= highest <= before.top:
        return before
    return value_axis(highest, rows)


def _spread(text: str, style: Style) -> Line:
    return [(sign, style) for sign in text]


def _strip(line: Line) -> Strip:
    """Neighbours of one style in one segment."""
    segments: list[Segment] = []
    run, run_style = "", Style()
    for sign, style in line:
        if style != run_style and run:
            segments.append(Segment(run, run_style))
            run = ""
        run, run_style = run + sign, style
    segments.append(Segment(run, run_style))
    return Strip(segments, len(line))
