"""Values over time as stacked areas and lines, drawn cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from pgq_tui.view_model.chart_data import ChartData, ChartSeries, bucket_index, value_at
from pgq_tui.view_model.chart_scale import ValueAxis
from pgq_tui.view_model.figures import format_rate
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.view_model.times import format_clock
from pgq_tui.widgets.chart_picture import ChartPicture, Surroundings
from pgq_tui.widgets.panel import Panel
from pgq_tui.widgets.segments import text_segments


class TimeChart(Panel, can_focus=True):
    """A chart over time; `show` is the one way to change its picture."""

    DEFAULT_CSS = """
    TimeChart {
        height: 1fr;
        min-height: 3;
        border: round $border-blurred;
        background: $surface;
        color: $foreground;
        &:focus { border: round $border; }
        &.-ascii { border: ascii $border-blurred; }
        &.-ascii:focus { border: ascii $border; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move_cursor(-1)", "Time cursor back", id="chart.cursor_back", show=False),
        Binding("right", "move_cursor(1)", "Time cursor forward", id="chart.cursor_forward", show=False),
        Binding("home", "move_cursor(-100000)", "Time cursor to the start", id="chart.cursor_start", show=False),
        Binding("end", "live", "Back to live", id="chart.live", show=False),
    ]

    cursor: reactive[datetime | None] = reactive(None, init=False)
    """The moment the operator looks at; None is now."""

    class CursorMoved(Message):
        """The time cursor stands on another moment, or left (None)."""

        def __init__(self, chart: TimeChart, at: datetime | None) -> None:
            super().__init__()
            self.chart = chart
            self.at = at

        @property
        def control(self) -> TimeChart:
            """The chart whose cursor moved."""
            return self.chart

    def __init__(
        self,
        title: str,
        *,
        note: str = "",
        format_value: Callable[[float | None], str] | None = None,
        id: str | None = None,  # noqa: A002 - the name every Textual widget gives it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._title = title
        self._note = note
        self._format_value = format_value or _plain_rate
        self._data: ChartData | None = None
        self._axis: ValueAxis | None = None
        self._picture: ChartPicture | None = None
        self._strips: list[Strip] | None = None

    def on_mount(self) -> None:
        """Take the frame that suits the terminal."""
        self.set_class(self.glyphs.is_ascii, "-ascii")
        self._show_legend()

    def show(self, data: ChartData) -> None:
        """Draw this; nothing is painted when it is what is shown already."""
        if data != self._data:
            self._data = data
            self._redraw()

    def set_note(self, note: str) -> None:
        """The words after the title, such as the length of the window."""
        self._note = note
        self._show_legend()

    def action_move_cursor(self, columns: int) -> None:
        """Move the time cursor; the first move starts from now."""
        if self._data is None or self._picture is None:
            return
        grid = self._picture.grid
        step = max(grid.per_column, self._data.bucket.total_seconds())
        last = self._data.end - step / 2
        start = self.cursor.timestamp() if self.cursor else last + (step if columns < 0 else 0)
        moment = max(start + columns * step, grid.start + step / 2)
        self._put_cursor(None if moment > last else moment)

    def action_live(self) -> None:
        """Take the time cursor away."""
        self.cursor = None

    def on_click(self, event: Click) -> None:
        """Put the time cursor where the mouse points."""
        offset = event.get_content_offset(self)
        picture = self._picture
        if offset is not None and picture is not None and offset.x >= picture.gutter:
            grid = picture.grid
            self._put_cursor(grid.start + (offset.x - picture.gutter + 0.5) * grid.per_column)

    def watch_cursor(self, cursor: datetime | None) -> None:
        """Show the values of the moment and tell the screen."""
        self._redraw()
        self.post_message(self.CursorMoved(self, cursor))

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._redraw()

    def notify_style_update(self) -> None:
        """Draw in the new colours."""
        super().notify_style_update()
        if self.is_attached:
            self._redraw()

    def render_line(self, y: int) -> Strip:
        """One line of the picture, drawn when the first is asked for."""
        if self._strips is None:
            self._strips = self._draw()
        if y < len(self._strips):
            return self._strips[y].apply_style(self.rich_style)
        return Strip.blank(self.size.width, self.rich_style)

    def _put_cursor(self, moment: float | None) -> None:
        zone = self._data.now.tzinfo if self._data else None
        self.cursor = None if moment is None else datetime.fromtimestamp(moment, zone)

    def _redraw(self) -> None:
        self._strips = None
        self._show_legend()
        self.refresh()

    def _show_legend(self) -> None:
        """Name and window on the left, the values of now or of the time cursor on the right."""
        palette = self.palette
        left = Text().append(one_line(self._title, 60, glyphs=self.glyphs), palette.style(Token.TEXT))
        if self._note:
            note = one_line(self._note, 40, glyphs=self.glyphs)
            left.append(f" {self.glyphs.separator} {note}", palette.style(Token.DIM))
        if self._data is None:
            self.set_title(left)
            return
        self.set_title(left, self._legend(self._data, has_values=True), self._legend(self._data, has_values=False))

    def _legend(self, data: ChartData, *, has_values: bool) -> Text:
        palette = self.palette
        legend = Text()
        if self.cursor and has_values:
            legend.append(format_clock(self.cursor), palette.style(Token.ACCENT))
        index = bucket_index(data.times, data.bucket, self.cursor) if self.cursor else -1
        # The top of the stack first: the legend reads in the order of the picture.
        for series, sign in [*((s, self._sign(s)) for s in reversed(data.series)), *((s, "─") for s in data.lines)]:
            legend.append("  " if legend else "")
            legend.append("-" if self.glyphs.is_ascii and sign == "─" else sign, palette.style(series.token))
            legend.append(f" {one_line(series.name, 20, glyphs=self.glyphs)}", palette.style(Token.DIM))
            if has_values:
                value = None if index is None else value_at(series, index)
                legend.append(f" {self._format_value(value)}", palette.style(Token.TEXT))
        return legend

    def _sign(self, series: ChartSeries) -> str:
        return series.ascii_fill if self.glyphs.is_ascii else series.fill

    def _draw(self) -> list[Strip]:
        data = self._data
        if self.size.width <= 0 or self.size.height <= 0:
            return []
        if data is None:
            return self._empty_picture("loading")
        if not data.has_values:
            return self._empty_picture(data.empty)
        _, surface = self.background_colors
        around = Surroundings(self.palette, self.glyphs, surface)
        self._picture = ChartPicture(data, self.size, around, cursor=self.cursor, axis_before=self._axis)
        self._axis = self._picture.axis
        return self._picture.strips()

    def _empty_picture(self, words: str) -> list[Strip]:
        width, height = self.size
        text = one_line(words, width, glyphs=self.glyphs)
        line = Text(text.center(width), self.palette.style(Token.DIM))
        blank = Strip.blank(width)
        middle = (height - 1) // 2
        return [
            Strip(text_segments(line, self.app.console), width) if row == middle else blank for row in range(height)
        ]


def _plain_rate(value: float | None) -> str:
    return format_rate(value, unit="")
