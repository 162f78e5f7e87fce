"""A question answered by typing one line."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Input, Static

from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.dialog import Dialog, DialogBox

Check = Callable[[str], str | None]
"""Says what is wrong with a text; None when nothing is."""


class InputDialog(Dialog[str | None]):
    """Ends with what was typed, or None when the operator left. Wrong input is explained and keeps the dialog."""

    DEFAULT_CSS = """
    InputDialog {
        & #input-prompt { width: 100%; }
        & #input-field { width: 100%; margin: 1 0; background: $background; }
        & #input-note { width: 100%; }
    }
    """

    def __init__(
        self,
        title: str,
        prompt: str,
        *,
        value: str = "",
        placeholder: str = "",
        check: Check | None = None,
        opened_by: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(opened_by=opened_by, clock=clock)
        self._dialog_title = title
        self._prompt = prompt
        self._value = value
        self._placeholder = placeholder
        self._check = check

    def compose(self) -> ComposeResult:
        """Prompt, field, what is wrong or which keys there are."""
        with DialogBox():
            yield Static(self.styled(self._prompt, Token.TEXT), id="input-prompt")
            placeholder = one_line(self._placeholder, 60, glyphs=self.glyphs)
            yield Input(self._value, placeholder=placeholder, id="input-field", compact=True)
            yield Static(self._keys(), id="input-note")

    def on_mount(self) -> None:
        """Ready to type."""
        super().on_mount()
        self.query_one(DialogBox).set_title(self._dialog_title)
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say at once what is wrong; an empty field is only asked for on enter."""
        trouble = self._check(event.value) if self._check and event.value else None
        self._say(trouble)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it when nothing is wrong with it."""
        trouble = self._check(event.value) if self._check else None
        if trouble:
            self._say(trouble)
        elif event.value != self._value or self.may_confirm("enter"):
            self.dismiss(event.value)

    def _say(self, trouble: str | None) -> None:
        note = self.query_one("#input-note", Static)
        if trouble:
            sign = self.glyphs.icons["warn"]
            note.update(self.styled(f"{sign} {one_line(trouble, 200, glyphs=self.glyphs)}", Token.FAILED))
        else:
            note.update(self._keys())

    def _keys(self) -> Text:
        text = self.styled("enter", Token.KEY)
        text.append(" accept   ", self.palette.style(Token.DIM))
        return text.append("esc", self.palette.style(Token.KEY)).append(" cancel", self.palette.style(Token.DIM))
