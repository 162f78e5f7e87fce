"""The question before an act: what it will do, in numbers, and to what."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Key
from textual.widgets import Button, Input, Static

from pgq_tui.view_model.chrome import Confirmation, ContextClass
from pgq_tui.view_model.figures import format_exact
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.dialog import Dialog, DialogBox, DialogButton

_WIDEST = 200


class ConfirmDialog(Dialog[bool]):
    """Ends with True only when the operator meant it: the focus starts on Cancel, `y` or the typed word confirms."""

    DEFAULT_CSS = """
    ConfirmDialog {
        & DialogBox { width: 96; }
        & #confirm-effect { width: 100%; margin-bottom: 1; }
        & #confirm-items { height: auto; max-height: 10; margin-bottom: 1; }
        & #confirm-list { width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
        & #confirm-note { width: 100%; margin-bottom: 1; }
        & #confirm-challenge { height: 1; margin-bottom: 1; }
        & #confirm-words { width: auto; }
        & #confirm-input { width: 1fr; margin-left: 1; background: $background; }
        & #confirm-buttons { height: 1; align-horizontal: right; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", "Confirm", id="confirm.yes", show=False),
        Binding("n", "refuse", "Cancel", id="confirm.no", show=False),
        Binding("left", "app.focus_previous", "Previous", id="confirm.previous", show=False),
        Binding("right", "app.focus_next", "Next", id="confirm.next", show=False),
    ]

    def __init__(
        self,
        confirmation: Confirmation,
        *,
        opened_by: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(opened_by=opened_by, clock=clock)
        self._confirmation = confirmation

    def compose(self) -> ComposeResult:
        """Effect, sample, note, challenge, buttons."""
        view = self._confirmation
        with DialogBox(id="confirm-box"):
            yield Static(self.styled(view.effect, Token.TEXT), id="confirm-effect")
            if view.items:
                with VerticalScroll(id="confirm-items", can_focus=False):
                    yield Static(self._items(), id="confirm-list")
            if view.note:
                yield Static(self.styled(view.note, Token.DIM), id="confirm-note")
            if view.challenge:
                with Horizontal(id="confirm-challenge"):
                    yield Static(self._challenge(), id="confirm-words")
                    yield Input(id="confirm-input", compact=True, select_on_focus=False)
            with Horizontal(id="confirm-buttons"):
                yield DialogButton(self._label("esc", "Cancel"), id="confirm-cancel")
                key = "enter" if view.challenge else "y"
                yield DialogButton(self._label(key, view.verb), id="confirm-verb")

    def on_mount(self) -> None:
        """Start on the answer that changes nothing."""
        super().on_mount()
        view = self._confirmation
        box = self.query_one(DialogBox)
        context = self.styled(one_line(view.context, 20, glyphs=self.glyphs), Token.PROTECTED)
        box.set_title(self.styled(one_line(view.title, 60, glyphs=self.glyphs), view.token), context)
        self.query_one("#confirm-cancel", DialogButton).focus()

    def on_key(self, event: Key) -> None:
        """Typing goes to the challenge though the focus starts on Cancel."""
        if not self._confirmation.challenge or not event.character or not event.is_printable:
            return
        field = self.query_one("#confirm-input", Input)
        if not field.has_focus:
            field.focus()
            field.insert_text_at_cursor(event.character)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button by mouse or enter; the confirming one obeys the same rules as its key."""
        if event.button.id == "confirm-cancel":
            self.action_cancel()
        else:
            self._confirm("enter")

    def on_input_submitted(self) -> None:
        """Enter in the challenge."""
        self._confirm("enter")

    def action_confirm(self) -> None:
        """The key `y`; with a challenge it is not enough."""
        if not self._confirmation.challenge:
            self._confirm("y")

    def action_refuse(self) -> None:
        """The key `n`; with a challenge it may be a part of what is typed."""
        if not self._confirmation.challenge:
            self.action_cancel()

    def action_cancel(self) -> None:
        """Close and change nothing."""
        self.dismiss(False)

    def _confirm(self, key: str) -> None:
        if not self.may_confirm(key):
            return
        if self._confirmation.challenge and not self._is_challenge_met():
            self.query_one("#confirm-input", Input).focus()
            return
        self.dismiss(True)

    def _is_challenge_met(self) -> bool:
        typed = self.query_one("#confirm-input", Input).value.strip()
        return typed.replace(",", "") == self._confirmation.challenge.replace(",", "")

    def _items(self) -> Text:
        """The affected things, one per line; a sample says how many more there are."""
        view, palette = self._confirmation, self.palette
        text = Text(no_wrap=True)
        for item in view.items:
            line = item if isinstance(item, Text) else one_line(item, _WIDEST, glyphs=self.glyphs)
            text.append(f"{self.glyphs.separator} ", palette.style(Token.DIM))
            text.append_text(line) if isinstance(line, Text) else text.append(line, palette.style(Token.TEXT))
            text.append("\n")
        more = view.total - len(view.items)
        if more > 0:
            text.append(f"{self.glyphs.ellipsis} and {format_exact(more)} more", palette.style(Token.DIM))
        text.rstrip()
        return text

    def _challenge(self) -> Text:
        text = self.styled("type ", Token.DIM)
        text.append(one_line(self._confirmation.challenge, 40, glyphs=self.glyphs), self.palette.style(Token.KEY))
        return text.append(" to confirm", self.palette.style(Token.DIM))

    def _label(self, key: str, words: str) -> Text:
        label = self.styled(f"{key} ", Token.KEY)
        return label.append(one_line(words, 30, glyphs=self.glyphs), self.palette.style(Token.TEXT))


def protected_name(context: str, context_class: ContextClass) -> str:
    """What a dialog shows in its border: the name of a protected context, nothing otherwise.

    >>> protected_name("prod", ContextClass.PROTECTED), protected_name("dev", ContextClass.NORMAL)
    ('PROD', '')
    """
    return context.upper() if context_class is ContextClass.PROTECTED else ""
