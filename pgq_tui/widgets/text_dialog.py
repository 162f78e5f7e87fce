"""A text in a box: read, scroll, copy."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pgq_tui.view_model.figures import format_bytes
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import safe_lines
from pgq_tui.view_model.wrapping import wrap_text
from pgq_tui.widgets.dialog import Dialog
from pgq_tui.widgets.text_view import TextView

LONGEST_COPY = 100_000
"""Characters given to the terminal's clipboard; terminals drop longer ones without a word."""


class TextDialog(Dialog[None]):
    """Shows a text as it is, or styled lines; `y` copies it."""

    DEFAULT_CSS = """
    TextDialog {
        & TextView { width: 90%; height: 85%; border: round $border; background: $panel; padding: 0 1; }
        & TextView.-ascii { border: ascii $border; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "cancel", "Close", id="text.close", show=False),
        Binding("y", "copy", "Copy", id="text.copy", show=False),
    ]

    def __init__(self, title: str, text: str | Text, *, copy_text: str | None = None) -> None:
        super().__init__()
        self._dialog_title = title
        self._text = text
        self._copy_text = copy_text if copy_text is not None else str(text)

    def compose(self) -> ComposeResult:
        """The text alone."""
        yield TextView(id="text-view")

    def on_mount(self) -> None:
        """Wrap and show."""
        super().on_mount()
        view = self.query_one(TextView)
        view.set_title(self._dialog_title)
        view.set_footer("", "y copy · esc close")
        view.show_lines(self._lines)
        view.focus()

    def action_copy(self) -> None:
        """Give the text to the terminal's clipboard and say how much that was."""
        copied = self._copy_text[:LONGEST_COPY]
        self.app.copy_to_clipboard(copied)
        rest = f" of {format_bytes(len(self._copy_text))}" if len(self._copy_text) > LONGEST_COPY else ""
        self.app.notify(f"copied {format_bytes(len(copied))}{rest} (OSC 52)", markup=False)

    def _lines(self, width: int) -> list[Text]:
        if isinstance(self._text, Text):
            return wrap_text(self._text, width)
        style = self.palette.style(Token.TEXT)
        lines = safe_lines(self._text, glyphs=self.glyphs)
        return [piece for line in lines for piece in wrap_text(Text(line, style), width)]
