"""All keys of the moment, searchable; enter runs the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from pgq_tui.view_model.chrome import HelpRow, matches_help
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.dialog import Dialog, DialogBox

_KEYS_WIDTH, _LABEL_WIDTH = 9, 15


class HelpOverlay(Dialog[str | None]):
    """Ends with the action of the row that was chosen, or None."""

    DEFAULT_CSS = """
    HelpOverlay {
        & DialogBox { width: 124; height: 90%; max-height: 90%; }
        & Input { width: 100%; margin-bottom: 1; background: $background; }
        & OptionList {
            width: 100%;
            height: 1fr;
            background: $panel;
            scrollbar-size: 1 1;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & #help-words { height: 2; margin-top: 1; }
        & OptionList > .option-list--option-highlighted { background: $block-cursor-background; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "cancel", "Close", id="help.close", show=False),
        Binding("up", "move(-1)", "Up", id="help.up", show=False, priority=True),
        Binding("down", "move(1)", "Down", id="help.down", show=False, priority=True),
        Binding("pageup", "move(-10)", "Page up", id="help.page_up", show=False, priority=True),
        Binding("pagedown", "move(10)", "Page down", id="help.page_down", show=False, priority=True),
    ]

    def __init__(self, rows: Sequence[HelpRow], *, title: str = "Help") -> None:
        super().__init__()
        self._rows = tuple(rows)
        self._dialog_title = title

    def compose(self) -> ComposeResult:
        """A field to search in and the keys by group."""
        with DialogBox():
            yield Input(placeholder="type to search, enter runs it", id="help-search", compact=True)
            yield OptionList(id="help-list", compact=True)
            yield Static(id="help-words", markup=False)

    def on_mount(self) -> None:
        """Show everything, ready to type."""
        super().on_mount()
        self.query_one(OptionList).can_focus = False
        self._show("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what matches."""
        self._show(event.value)

    def on_input_submitted(self) -> None:
        """Run the row under the cursor."""
        answers = self.query_one(OptionList)
        if answers.highlighted is not None:
            self._choose(answers.get_option_at_index(answers.highlighted))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click on a row."""
        self._choose(event.option)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """What the row has no room for stands below the list."""
        self._explain(self._rows[int(event.option.id)].description if event.option.id else "")

    def _explain(self, words: str) -> None:
        self.query_one("#help-words", Static).update(self.styled(one_line(words, 200, glyphs=self.glyphs), Token.TEXT))

    def action_move(self, lines: int) -> None:
        """Move the cursor of the list while the field keeps the focus."""
        answers = self.query_one(OptionList)
        for _ in range(abs(lines)):
            answers.action_cursor_down() if lines > 0 else answers.action_cursor_up()

    def _choose(self, option: Option) -> None:
        row = self._rows[int(option.id)] if option.id else None
        if row is not None and row.action:
            self.dismiss(row.action)

    def _show(self, search: str) -> None:
        answers = self.query_one(OptionList)
        found = [(index, row) for index, row in enumerate(self._rows) if matches_help(row, search)]
        answers.clear_options()
        group: str | None = None
        for index, row in found:
            if row.group != group:
                group = row.group
                answers.add_option(Option(self._heading(group), disabled=True))
            answers.add_option(Option(self._line(row), id=str(index)))
        answers.highlighted = 1 if found else None
        box = self.query_one(DialogBox)
        box.set_title(self._dialog_title, plural(len(found), "key"))
        box.set_footer("", "esc close" if found else "nothing matches")
        if not found:
            self._explain("")

    def _heading(self, group: str) -> Text:
        return self.styled(one_line(group, 40, glyphs=self.glyphs), Token.ACCENT)

    def _line(self, row: HelpRow) -> Text:
        palette, glyphs = self.palette, self.glyphs
        line = self.styled("  " + one_line(row.keys, _KEYS_WIDTH, glyphs=glyphs).ljust(_KEYS_WIDTH), Token.KEY)
        line.append(one_line(row.label, _LABEL_WIDTH, glyphs=glyphs).ljust(_LABEL_WIDTH), palette.style(Token.TEXT))
        return line.append(" " + one_line(row.description, 120, glyphs=glyphs), palette.style(Token.DIM))
