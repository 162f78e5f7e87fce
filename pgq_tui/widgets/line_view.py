"""A scrolling view of styled lines, drawn line by line when they are seen, with text that the mouse can select."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.panel import Panel
from pgq_tui.widgets.segments import text_segments

_STRIPS_KEPT = 1_000


class LineView(ScrollView, Panel, can_focus=True):
    """The common ground of tails and texts: subclasses say how many lines there are and what is on each."""

    ALLOW_SELECT = True

    DEFAULT_CSS = """
    LineView {
        border: round $border-blurred;
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        &:focus { border: round $border; }
        &.-ascii { border: ascii $border-blurred; }
        &.-ascii:focus { border: ascii $border; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k,up", "line_up", "Up", id="lines.up", show=False),
        Binding("j,down", "line_down", "Down", id="lines.down", show=False),
        Binding("ctrl+u", "half_page(-1)", "Half a page up", id="lines.half_up", show=False),
        Binding("ctrl+d", "half_page(1)", "Half a page down", id="lines.half_down", show=False),
        Binding("pageup", "whole_page(-1)", "Page up", id="lines.page_up", show=False),
        Binding("pagedown", "whole_page(1)", "Page down", id="lines.page_down", show=False),
        Binding("g,home", "first_line", "To the start", id="lines.first", show=False),
        Binding("G,end", "last_line", "To the end", id="lines.last", show=False),
    ]

    def __init__(
        self,
        *,
        empty: str = "",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._empty = empty
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_STRIPS_KEPT)

    @property
    @abstractmethod
    def line_count(self) -> int:
        """How many lines there are."""

    @abstractmethod
    def line_text(self, index: int) -> Text:
        """What is on a line; asked for only when the line is seen or copied."""

    @abstractmethod
    def line_key(self, index: int) -> Hashable:
        """Changes whenever `line_text` of this line would."""

    def line_style(self, index: int) -> Style | None:  # noqa: ARG002 - for subclasses
        """A style over the whole line, such as that of the cursor."""
        return None

    @property
    def empty_words(self) -> str:
        """What is said instead of lines."""
        return self._empty

    @property
    def columns_left_out(self) -> int:
        """How far the lines are scrolled sideways."""
        return 0

    @property
    def page_rows(self) -> int:
        """How many lines are seen at once."""
        return max(self.scrollable_content_region.height, 1)

    def on_mount(self) -> None:
        """Take the frame that suits the terminal."""
        self.set_class(self.glyphs.is_ascii, "-ascii")

    def set_empty(self, words: str) -> None:
        """Say this when there are no lines."""
        self._empty = words
        self.refresh()

    def lines_changed(self) -> None:
        """To be called after the number or the content of the lines changed."""
        self.virtual_size = Size(self.scrollable_content_region.width, self.line_count)
        self.refresh()

    def scroll_row(self, row: int) -> None:
        """Put a line at the top of the window, as far as the text allows."""
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False, force=True)

    def action_line_up(self) -> None:
        """One line up."""
        self.scroll_row(self.scroll_offset.y - 1)

    def action_line_down(self) -> None:
        """One line down."""
        self.scroll_row(self.scroll_offset.y + 1)

    def action_half_page(self, direction: int) -> None:
        """Half a window up or down."""
        self.scroll_row(self.scroll_offset.y + direction * max(self.page_rows // 2, 1))

    def action_whole_page(self, direction: int) -> None:
        """A window up or down; one line stays for the eye."""
        self.scroll_row(self.scroll_offset.y + direction * max(self.page_rows - 1, 1))

    def action_first_line(self) -> None:
        """To the first line."""
        self.scroll_row(0)

    def action_last_line(self) -> None:
        """To the last line."""
        self.scroll_row(self.line_count)

    def render_line(self, y: int) -> Strip:
        """One line of the window."""
        index = self.scroll_offset.y + y
        width = self.size.width
        base = self.rich_style
        if not 0 <= index < self.line_count:
            return self._words_strip(width, base) if y == 0 and not self.line_count else Strip.blank(width, base)
        over = self.line_style(index)
        style = base + over if over else base
        left = self.columns_left_out
        whole = self._line_strip(index).apply_style(style)
        return self._cut_strip(whole, left, width, style).apply_offsets(left, index)

    def _cut_strip(self, whole: Strip, left: int, width: int, style: Style) -> Strip:
        """The part in the window; where more of the line is to the right of it, the last cell in sight says so."""
        sign, seen = self.glyphs.ellipsis, self.scrollable_content_region.width
        room = seen - cell_len(sign)
        if whole.cell_length <= left + seen or room < 1:
            return whole.crop_extend(left, left + width, style)
        more = Strip([Segment(sign, style + self.palette.style(Token.DIM))], cell_len(sign))
        return Strip.join([whole.crop_extend(left, left + room, style), more]).crop_extend(0, width, style)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text between two points the mouse chose."""
        first = selection.start.y if selection.start else 0
        last = selection.end.y if selection.end else self.line_count - 1
        wanted = range(max(first, 0), min(last, self.line_count - 1) + 1)
        lines = [self.line_text(index).plain if index in wanted else "" for index in range(wanted.stop)]
        return selection.extract("\n".join(lines)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's signature
        """Show what is chosen."""
        self.refresh()

    def notify_style_update(self) -> None:
        """Draw in the new colours."""
        super().notify_style_update()
        self._strips.clear()
        self.refresh()

    def _words_strip(self, width: int, base: Style) -> Strip:
        words = one_line(self.empty_words, width, glyphs=self.glyphs)
        return Strip([Segment(words, base + self.palette.style(Token.DIM))]).crop_extend(0, width, base)

    def _line_strip(self, index: int) -> Strip:
        """The whole line as a strip, not yet cut to the window; kept until its key changes."""
        span = self.text_selection.get_span(index) if self.text_selection else None
        key = self.line_key(index)
        if span is None and (kept := self._strips.get(key)) is not None:
            return kept
        text = self.line_text(index)
        if span is not None:
            text = text.copy()
            start, end = span
            chosen = self.screen.get_component_rich_style("screen--selection")
            text.stylize(chosen, start, len(text) if end == -1 else end)
        strip = Strip(text_segments(text, self.app.console), cell_len(text.plain))
        if span is None:
            self._strips[key] = strip
        return strip
