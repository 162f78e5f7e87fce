"""One red line over the picture while the database is away or cannot be read."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.bar import Bar, Part

_LONGEST = 300


class Banner(Bar):
    """Hidden while it has nothing to say."""

    DEFAULT_CSS = """
    Banner { display: none; background: $panel; }
    Banner.-shown { display: block; }
    """

    _words = ""

    def say(self, words: str) -> None:
        """Show these words; none hides the line."""
        if words != self._words:
            self._words = words
            self.set_class(bool(words), "-shown")
            self.refresh()

    def left_parts(self) -> list[Part]:
        sign = self.glyphs.icons["dead"]
        words = one_line(self._words, min(max(self.size.width - 14, 8), _LONGEST), glyphs=self.glyphs)
        return [Part(Text(f"{sign} {words}", self.palette.style(Token.DEAD)))] if self._words else []

    def right_parts(self) -> list[Part]:
        text = Text("r", self.palette.style(Token.KEY)).append(" try now", self.palette.style(Token.DIM))
        return [Part(text, 1, "refresh_now")]

    def bar_style(self) -> Style:
        return Style()
