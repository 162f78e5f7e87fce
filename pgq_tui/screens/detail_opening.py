"""From a list to the detail beside it, and from there to the whole of it."""

from __future__ import annotations

from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.text_dialog import TextDialog


class DetailOpening(ConsoleScreen):
    """For screens with a list and one pane for the detail of its selected row."""

    @property
    def is_in_detail(self) -> bool:
        """Whether the pane has the focus."""
        return isinstance(self.focused, DetailPane)

    def labels(self) -> dict[str, str]:
        return {**super().labels(), "open_detail": "whole text" if self.is_in_detail else "detail"}

    def open_detail(self) -> bool:
        """Focus the pane; where it has the focus, lay all of it over the screen. False where there is no pane."""
        pane = self.query_one(DetailPane)
        if not pane.display:
            return False
        if not self.is_in_detail:
            pane.focus()
        elif pane.detail is not None:
            self.app.push_screen(TextDialog(pane.detail.title, pane.copy_text))
        return True
