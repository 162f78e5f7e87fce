"""What all dialogs share: a box in the middle, and a moment in which nothing can be confirmed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button

from pgq_tui.theme import glyphs_of, palette_of
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import clean_text
from pgq_tui.widgets.panel import Panel

Result = TypeVar("Result")

DEAD_SECONDS = 0.3
"""So long after opening no key confirms: the finger that opened the dialog may still be on its key."""


class DialogBox(Vertical, Panel):
    """The frame of a dialog."""

    DEFAULT_CSS = """
    DialogBox {
        width: 72;
        max-width: 94%;
        height: auto;
        max-height: 90%;
        padding: 0 1;
        background: $panel;
        border: round $border;
        &.-ascii { border: ascii $border; }
    }
    """

    def on_mount(self) -> None:
        """Take the frame that suits the terminal."""
        self.set_class(self.glyphs.is_ascii, "-ascii")


class DialogButton(Button):
    """A button of one line, such as `[ Cancel ]`."""

    DEFAULT_CSS = """
    DialogButton {
        min-width: 0;
        width: auto;
        height: 1;
        padding: 0 2;
        margin-left: 2;
        border: none;
        background: $surface;
        color: $foreground-muted;
        text-style: none;
        &:hover { border: none; background: $block-cursor-blurred-background; }
        &:focus {
            border: none;
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: bold;
        }
        &:ansi:focus { text-style: bold reverse; }
        &.-active { border: none; tint: $background 0%; }
    }
    """

    def __init__(self, label: Text, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(Content.from_rich_text(Text().append_text(label)), id=id, compact=True)


class Dialog(ModalScreen[Result]):
    """A modal box. `opened_by` names the key that opened it, which never confirms it."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 65%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="dialog.cancel", show=False),
    ]

    def __init__(self, *, opened_by: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._opened_by = opened_by
        self._clock = clock
        self._opened_at = clock()

    @property
    def palette(self) -> Palette:
        """The styles of the theme that is on."""
        return palette_of(self.app)

    @property
    def glyphs(self) -> Glyphs:
        """The signs of this terminal."""
        return glyphs_of(self.app)

    @property
    def is_armed(self) -> bool:
        """Whether the moment after opening is over, and was when the key was typed that is dealt with now.

        A key may have been held until the dialog was there: nobody can have read what it would confirm.
        """
        typed_at: float | None = getattr(self.app, "typed_at", None)
        given_at = self._clock() if typed_at is None else min(self._clock(), typed_at)
        return given_at - self._opened_at >= DEAD_SECONDS

    def on_mount(self) -> None:
        """The dead moment starts when the dialog is there, not when somebody made it."""
        self._opened_at = self._clock()

    def may_confirm(self, key: str) -> bool:
        """Whether this key confirms now."""
        return self.is_armed and key != self._opened_by

    def action_cancel(self) -> None:
        """Close and change nothing."""
        self.dismiss(None)

    def styled(self, words: str, token: Token) -> Text:
        """Words in the colour of a token, made safe: effects and titles may quote jobs."""
        return Text().append(clean_text(words, multiline=True, glyphs=self.glyphs), self.palette.style(token))
