"""A question with a few answers, each with its key."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from pgq_tui.view_model.chrome import Choice
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.dialog import Dialog, DialogBox


class ChoiceDialog(Dialog[str | None]):
    """Ends with the id of the answer, or None. The first answer is the one that enter takes: put the safe one there."""

    DEFAULT_CSS = """
    ChoiceDialog {
        & #choice-text { width: 100%; margin-bottom: 1; }
        & OptionList { width: 100%; height: auto; background: $panel; }
        & OptionList:focus { background-tint: $foreground 0%; }
    }
    """

    def __init__(
        self,
        title: str,
        text: str,
        choices: Sequence[Choice],
        *,
        opened_by: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(opened_by=opened_by, clock=clock)
        self._dialog_title = title
        self._text = text
        self._choices = tuple(choices)

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with DialogBox():
            yield Static(self.styled(self._text, Token.TEXT), id="choice-text")
            yield OptionList(*(Option(self._line(choice), id=choice.id) for choice in self._choices), compact=True)

    def on_mount(self) -> None:
        """Start on the safe answer."""
        super().on_mount()
        box = self.query_one(DialogBox)
        box.set_title(self._dialog_title)
        box.set_footer("", "enter choose · esc stay" if not self.glyphs.is_ascii else "enter choose | esc stay")
        answers = self.query_one(OptionList)
        answers.highlighted = 0
        answers.focus()

    def on_key(self, event: Key) -> None:
        """The key of an answer takes it."""
        for choice in self._choices:
            if event.key == choice.key:
                event.stop()
                event.prevent_default()
                self._choose(choice.id, choice.key)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click on an answer."""
        self._choose(event.option.id, "enter")

    def _choose(self, choice_id: str | None, key: str) -> None:
        if self.may_confirm(key):
            self.dismiss(choice_id)

    def _line(self, choice: Choice) -> Text:
        palette, glyphs = self.palette, self.glyphs
        widest = max(len(one_line(other.label, 24, glyphs=glyphs)) for other in self._choices)
        keys = max(len(other.key) for other in self._choices)
        line = self.styled(f" {choice.key.ljust(keys)}  ", Token.KEY)
        line.append(one_line(choice.label, 24, glyphs=glyphs).ljust(widest + 2), palette.style(choice.token))
        return line.append(one_line(choice.description, 100, glyphs=glyphs), palette.style(Token.DIM))
