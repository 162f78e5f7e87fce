"""A longer text to read: wrapped to the width, scrolled, copied."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from rich.text import Text

from pgq_tui.widgets.line_view import LineView

LinesFor = Callable[[int], list[Text]]
"""The lines of the text for a width."""


class TextView(LineView):
    """Shows lines that are laid out anew when the width changes."""

    def __init__(
        self,
        *,
        empty: str = "",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(empty=empty, id=id, classes=classes)
        self._lines_for: LinesFor = lambda _: []
        self._lines: list[Text] = []
        self._layout_number = 0
        self._laid_out_for = -1

    def show_lines(self, lines_for: LinesFor, *, from_top: bool = True) -> None:
        """Show a text; `from_top` scrolls to its start, else the place is kept."""
        self._lines_for = lines_for
        self._laid_out_for = -1
        self._lay_out()
        if from_top:
            self.scroll_row(0)

    @property
    def plain(self) -> str:
        """The text as it is laid out now."""
        return "\n".join(line.plain for line in self._lines)

    @property
    def line_count(self) -> int:
        """How many lines the text has at this width."""
        return len(self._lines)

    def line_text(self, index: int) -> Text:
        """One line."""
        return self._lines[index]

    def line_key(self, index: int) -> Hashable:
        """Every layout draws its own lines."""
        return self._layout_number, index

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._lay_out()

    def notify_style_update(self) -> None:
        """Lay out in the new colours."""
        super().notify_style_update()
        if self.is_attached:
            self._laid_out_for = -1
            self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0 or width == self._laid_out_for:
            return
        self._lines = self._lines_for(width)
        self._laid_out_for = width
        self._layout_number += 1
        self._strips.clear()
        self.lines_changed()
