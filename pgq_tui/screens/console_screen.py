"""A screen of the console: the commands and messages that are the same on all of them."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.widgets import DataTable

from pgq_tui.commands import bindings, help_rows
from pgq_tui.messages import CommandTyped, GoTo
from pgq_tui.screens.acting_screen import ActingScreen
from pgq_tui.screens.clipboard import copied_words
from pgq_tui.screens.framed_screen import REFUSED
from pgq_tui.screens.prompt import Prompt
from pgq_tui.screens.suggestions import suggestions
from pgq_tui.widgets.help_overlay import HelpOverlay
from pgq_tui.widgets.status_bar import KeyHints, TabStrip
from pgq_tui.widgets.text_dialog import LONGEST_COPY


class ConsoleScreen(ActingScreen):
    """Subclasses add what they alone can do."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    def copy_words(self) -> str:
        """What the copy key gives to the clipboard."""
        return ""

    def go_back(self) -> bool:
        """Close or clear what is open; false when nothing was."""
        return False

    def show_row(self, key: str) -> None:
        """Another screen sent the operator to this row."""

    def show_filtered(self, line: str) -> None:
        """Another screen sent the operator to the rows that this filter line keeps."""

    def on_tab_strip_tab_clicked(self, message: TabStrip.TabClicked) -> None:
        self.post_message(GoTo(message.tab_id))

    async def on_key_hints_hint_clicked(self, message: KeyHints.HintClicked) -> None:
        await self.run_command(message.action)

    def on_prompt_closed(self) -> None:
        self.remove_class("-asking", REFUSED)
        self.restore_focus()

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        if message.kind == "command" and message.text:
            self.post_message(CommandTyped(message.text))
        else:
            self.prompt_submitted(message.kind, message.text)

    def prompt_submitted(self, kind: str, text: str) -> None:
        """Another kind of line was typed; for subclasses that asked for it."""

    def ask(self, kind: str, *, sign: str, value: str = "", suggestions: tuple[str, ...] = ()) -> None:
        """Open the prompt in the place of the status line."""
        self.add_class("-asking")
        self.query_one(Prompt).open(kind, sign=sign, value=value, suggestions=suggestions)

    def restore_focus(self) -> None:
        """Back to the main pane."""
        main = self.query("#body .main").first()
        main.focus()

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        await self.run_command("open")

    # Commands of every screen.

    def action_screen(self, screen: str) -> None:
        self.post_message(GoTo(screen))

    def action_open(self) -> None:
        """For screens without anything to open."""

    def action_back(self) -> None:
        if not self.go_back():
            self.restore_focus()

    def action_next_pane(self) -> None:
        self.focus_next()

    def action_previous_pane(self) -> None:
        self.focus_previous()

    def action_command_line(self) -> None:
        self.action_type_command("")

    def action_type_command(self, start: str) -> None:
        """Open the command line with these words in it."""
        self.ask("command", sign=":", value=start, suggestions=suggestions(self.session.overview))

    @work(group="help", exclusive=True, exit_on_error=False)
    async def action_help(self) -> None:
        rows = help_rows(self.ID, self.usable_ids())
        chosen = await self.app.push_screen_wait(HelpOverlay(rows, title=f"Help: {self.crumb()}"))
        if chosen:
            await self.run_command(chosen)

    def action_refresh_now(self) -> None:
        if self.is_frozen:
            self.action_freeze()
        self.poller.kick()

    def action_freeze(self) -> None:
        self.is_frozen = not self.is_frozen
        if self.is_frozen:
            self.poller.rest()
        else:
            self.poller.watch()
        self.refresh_chrome()

    def action_rate(self, step: int) -> None:
        interval = self.session.change_interval(step)
        self.poller.kick()
        self.say(f"looks every {interval:g} s")

    def action_copy(self) -> None:
        if words := self.copy_words():
            self.app.copy_to_clipboard(words[:LONGEST_COPY])
            self.notify(copied_words(words), markup=False, timeout=4)

    def action_toggle_header(self) -> None:
        self.toggle_class("-bare")

    def action_interrupt(self) -> None:
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.call_next(self.run_action, "app.leave")
