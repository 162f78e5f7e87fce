"""What stands in the place of a screen that has nothing to show yet: still loading, no schema, no rights."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual.geometry import Size
from textual.strip import Strip

from pgq_core.errors import DatabaseUnavailable, MissingRights, SchemaError
from pgq_tui.screens.link import cause
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.view_model.wrapping import wrap_text
from pgq_tui.widgets.panel import Panel

_WIDEST = 76


@dataclass(frozen=True, slots=True)
class NoticeView:
    """A heading, what it means, and the next useful keys or commands."""

    heading: str
    text: str
    keys: str
    token: Token = Token.TEXT


def loading_notice(seconds: float) -> NoticeView:
    """Said when the first answer takes longer than a blink."""
    return NoticeView("looking at the database", f"{seconds:.1f} s so far", "q quits", Token.SCHEDULED)


def error_notice(error: Exception) -> NoticeView:
    """What an error means for somebody who has seen nothing yet, and what to do."""
    if isinstance(error, SchemaError) and not isinstance(error, MissingRights):
        keys = "run the command in another terminal: this console opens by itself afterwards · r tries now · q quits"
        return NoticeView("this database is not ready for pgq", cause(error), keys, Token.RETRY)
    if isinstance(error, MissingRights):
        return NoticeView("this role may not look", cause(error), "r tries again · q quits", Token.FAILED)
    if isinstance(error, DatabaseUnavailable | OSError):
        keys = "it is tried again and again · r tries now · q quits"
        return NoticeView("the database cannot be reached", cause(error), keys, Token.FAILED)
    return NoticeView("the database could not be read", cause(error), "r tries again · q quits", Token.FAILED)


class Notice(Panel):
    """A message in the middle of the screen."""

    DEFAULT_CSS = """
    Notice {
        display: none;
        height: 1fr;
        width: 1fr;
        background: $surface;
        color: $foreground;
        border: round $border-blurred;
        &.-shown { display: block; }
        &.-ascii { border: ascii $border-blurred; }
    }
    """

    _view: NoticeView | None = None

    def on_mount(self) -> None:
        """Take the frame that suits the terminal."""
        self.set_class(self.glyphs.is_ascii, "-ascii")

    def say(self, view: NoticeView | None) -> None:
        """Show this; None hides the notice."""
        if view != self._view:
            self._view = view
            self.set_class(view is not None, "-shown")
            self.refresh()

    def render_line(self, y: int) -> Strip:
        size = self.size
        lines = self._lines(size)
        index = y - max((size.height - len(lines)) // 2, 0)
        if not 0 <= index < len(lines) or size.width <= 0:
            return Strip.blank(max(size.width, 0), self.rich_style)
        line = lines[index]
        line.end = ""
        left = max((size.width - line.cell_len) // 2, 0)
        strip = Strip([*Text(" " * left, end="").render(self.app.console), *line.render(self.app.console)])
        return strip.apply_style(self.rich_style).crop_extend(0, size.width, self.rich_style)

    def _lines(self, size: Size) -> list[Text]:
        view = self._view
        if view is None:
            return []
        width = max(min(size.width - 4, _WIDEST), 1)
        parts = ((view.heading, view.token), ("", Token.TEXT), (view.text, Token.TEXT), ("", Token.TEXT))
        lines: list[Text] = []
        for words, token in (*parts, (view.keys, Token.DIM)):
            text = Text(one_line(words, 1_000, glyphs=self.glyphs), self.palette.style(token))
            lines += wrap_text(text, width)
        return lines
