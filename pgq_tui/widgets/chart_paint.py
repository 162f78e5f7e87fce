"""The colours of a chart: each cell of the drawing as a style of the theme that is on."""

from __future__ import annotations

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

from pgq_tui.view_model.chart_canvas import EIGHTHS, Cell
from pgq_tui.view_model.chart_data import ChartData, ChartSeries
from pgq_tui.view_model.palette import Palette

_DARKEST = 0.74
"""How strong a colour is in the lowest row; it grows to full strength at the top, which gives the area depth."""
_PATTERN_GROUND = 0.7
_FILL_STRENGTH = {"█": 1.0, "▓": 0.92, "▒": 0.85}


class ChartPaint:
    """Styles for the cells of one drawing; each is made once."""

    def __init__(self, data: ChartData, palette: Palette, surface: Color, rows: int) -> None:
        self._data = data
        self._palette = palette
        self._surface = surface
        self._rows = max(rows, 1)
        self._styles: dict[tuple[object, ...], Style] = {}

    def style(self, cell: Cell, row: int) -> Style:
        """The style of a cell in a row, counted from the base line."""
        key = (cell.char if cell.ink is not None else "", cell.ink, cell.ground, cell.line, row)
        if key not in self._styles:
            self._styles[key] = self._make(cell, row)
        return self._styles[key]

    def under(self, cell: Cell, row: int) -> RichColor | None:
        """The colour behind something drawn over the cell."""
        return self._solid(cell.ink if cell.ground is None and cell.char not in EIGHTHS else cell.ground, row)

    def _make(self, cell: Cell, row: int) -> Style:
        if cell.line is not None:
            ink = self._palette.style(self._data.lines[cell.line].token).color
            return Style(color=ink, bgcolor=self._solid(cell.ground, row), bold=True)
        if cell.ink is None:
            return Style()
        if cell.ground == cell.ink:
            return self._filled(self._data.series[cell.ink], cell.char, row)
        return Style(color=self._solid(cell.ink, row), bgcolor=self._solid(cell.ground, row))

    def _filled(self, series: ChartSeries, char: str, row: int) -> Style:
        """A full cell: a solid one has its colour behind it too, so that no gap shows between lines."""
        colour = self._palette.style(series.token).color
        if char == "█":
            shaded = self._shaded(colour, 1.0, row)
            return Style(color=shaded, bgcolor=shaded if self._palette.has_colour else None)
        ground = self._shaded(colour, _PATTERN_GROUND, row) if _is_true(colour) else None
        return Style(color=self._shaded(colour, 1.0, row), bgcolor=ground)

    def _solid(self, index: int | None, row: int) -> RichColor | None:
        """One colour for a series where its pattern has no room."""
        if index is None:
            return None
        series = self._data.series[index]
        return self._shaded(self._palette.style(series.token).color, _FILL_STRENGTH.get(series.fill, 1.0), row)

    def _shaded(self, colour: RichColor | None, strength: float, row: int) -> RichColor | None:
        """The colour mixed with the surface; the 16 colours of a terminal cannot be mixed."""
        if colour is None or not _is_true(colour) or self._surface.ansi is not None:
            return colour
        depth = _DARKEST + (1 - _DARKEST) * (row + 1) / self._rows
        mixed = self._surface.blend(Color.from_rich_color(colour), strength * depth, alpha=1.0)
        return mixed.rich_color


def _is_true(colour: RichColor | None) -> bool:
    return colour is not None and colour.triplet is not None
