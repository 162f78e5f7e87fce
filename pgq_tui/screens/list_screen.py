"""What the screens with a filter line have in common."""

from __future__ import annotations

from abc import abstractmethod

from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.framed_screen import REFUSED
from pgq_tui.view_model.list_filter import FilterError
from pgq_tui.view_model.palette import Token

_LONGEST_CRUMB = 40


class ListScreen(ConsoleScreen):
    """A list that the operator narrows by typing."""

    filter_line = ""

    @abstractmethod
    def use_filter(self, line: str) -> None:
        """Narrow the list; raises FilterError for a line that means nothing here."""

    def narrow(self, line: str) -> bool:
        """Take the line as the new filter; false, with a sentence why, when it means nothing."""
        try:
            self.use_filter(line)
        except FilterError as error:
            self.say(str(error), Token.FAILED)
            return False
        self.filter_line = line
        self.poller.kick()
        self.refresh_chrome()
        return True

    def crumb(self) -> str:
        title = super().crumb()
        return f"{title} / {self.filter_line[:_LONGEST_CRUMB]}" if self.filter_line else title

    def prompt_submitted(self, kind: str, text: str) -> None:
        if kind == "filter" and not self.narrow(text := self._with_one_blank(text)):
            self.ask("filter", sign="/", value=text)
            self.add_class(REFUSED)

    def _with_one_blank(self, line: str) -> str:
        """Who typed a blank first, by habit, meant the one that is there."""
        head = f"{self.filter_line} "
        return head + line[len(head) :].lstrip() if self.filter_line and line.startswith(head) else line

    def show_filtered(self, line: str) -> None:
        if line != self.filter_line:
            self.narrow(line)

    def go_back(self) -> bool:
        if self.filter_line:
            self.narrow("")
            return True
        return super().go_back()

    def empty_words(self, otherwise: str) -> str:
        """Why the list is empty, and what to press."""
        return f"nothing matches {self.filter_line} · esc clears the filter" if self.filter_line else otherwise

    def action_filter(self) -> None:
        # The blank keeps what is typed next apart from what is there.
        self.ask("filter", sign="/", value=f"{self.filter_line} " if self.filter_line else "")
