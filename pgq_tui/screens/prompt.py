"""The line in which commands and filters are typed, in the place of the status line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

_KEPT = 100
_LONGEST = 2_000


class PromptInput(Input):
    """The field; up and down walk through what was typed before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", id="prompt.cancel", show=False),
        Binding("up", "past(-1)", "Earlier", id="prompt.earlier", show=False),
        Binding("down", "past(1)", "Later", id="prompt.later", show=False),
        Binding("tab", "accept", "Complete", id="prompt.complete", show=False),
    ]

    class Left(Message):
        """The operator pressed escape."""

    def __init__(self) -> None:
        super().__init__(compact=True, max_length=_LONGEST, select_on_focus=False)
        self.past: list[str] = []
        self._place = 0

    def start(self, value: str, past: list[str], suggestions: Sequence[str]) -> None:
        self.past = past
        self._place = len(past)
        self.suggester = SuggestFromList(suggestions, case_sensitive=True) if suggestions else None
        self.value = value
        self.cursor_position = len(value)
        self.focus()

    def on_paste(self, event: events.Paste) -> None:
        """Take of a long text what there is room for; the field itself would take nothing and not say so."""
        line = next(iter(event.text.splitlines()), "")
        room = _LONGEST - len(self.value) + len(self.selected_text)
        if len(line) > room:
            event.prevent_default()
            event.stop()
            self.replace(line[:room], *self.selection)
            self.notify(f"pasted the first {room:,} of {len(line):,} characters", severity="warning", markup=False)

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def action_accept(self) -> None:
        """Take the suggestion that is shown."""
        self.action_cursor_right()

    def action_past(self, step: int) -> None:
        if not self.past:
            return
        self._place = min(max(self._place + step, 0), len(self.past))
        self.value = self.past[self._place] if self._place < len(self.past) else ""
        self.cursor_position = len(self.value)


class Prompt(Horizontal):
    """Hidden until it is opened; tells its screen what was typed and of which kind it is."""

    DEFAULT_CSS = """
    Prompt {
        display: none;
        height: 1;
        background: $panel;
        &.-open { display: block; }
        & > Static { width: auto; padding: 0 1; color: $pgq-key; }
        & > PromptInput, & > PromptInput:focus { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    }
    """

    class Submitted(Message):
        """The operator pressed enter."""

        def __init__(self, kind: str, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Closed(Message):
        """The prompt is gone; the focus has to go back where it was."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._kind = ""
        self._past: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, id="prompt-sign")
        yield PromptInput()

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self, kind: str, *, sign: str, value: str = "", suggestions: Sequence[str] = ()) -> None:
        """Ask for a line of this kind."""
        self._kind = kind
        self.query_one(Static).update(sign)
        self.add_class("-open")
        self.query_one(PromptInput).start(value, self._past.setdefault(kind, []), suggestions)

    def close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        past = self._past.setdefault(self._kind, [])
        if text and (not past or past[-1] != text):
            past.append(text)
            del past[:-_KEPT]
        self.close()
        self.post_message(self.Submitted(self._kind, text))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_prompt_input_left(self, event: PromptInput.Left) -> None:
        event.stop()
        self.close()
