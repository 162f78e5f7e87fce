"""Pausing and resuming the queue under the cursor, from whichever screen shows it."""

from __future__ import annotations

from abc import abstractmethod

from textual import work

from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.verbs import pause_queue, resume_queue
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.input_dialog import InputDialog

_LONGEST_REASON = 200


class PauseFlow(ConsoleScreen):
    """For screens with a queue under the cursor."""

    @abstractmethod
    def selected_queue(self) -> str | None:
        """The name of the queue a key is about."""

    @work(group="acts", exit_on_error=False)
    async def action_toggle_pause(self) -> None:
        name = self.selected_queue()
        if name is None:
            return
        queues = self.session.overview.queues if self.session.overview else ()
        if any(queue.name == name and queue.paused for queue in queues):
            await resume_queue(self, name)
            return
        dialog = InputDialog(
            f"Pause {one_line(name, 40)}",
            "No worker starts another job of it; what runs goes on.\nWhy? Everyone will see it; it may be empty.",
            placeholder="deploy, maintenance, ...",
            check=_too_long,
            opened_by="p",
        )
        reason = await self.app.push_screen_wait(dialog)
        if reason is not None:
            await pause_queue(self, name, reason.strip() or None)


def _too_long(text: str) -> str | None:
    return f"at most {_LONGEST_REASON} characters" if len(text) > _LONGEST_REASON else None
