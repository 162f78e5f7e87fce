"""Choosing which runs of the queue under the cursor leave a row."""

from __future__ import annotations

from abc import abstractmethod

from textual import work

from pgq_core.domain.audit import Audit, AuditRule, checked_rule
from pgq_core.domain.snapshot import QueueView
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.verbs import set_audit
from pgq_tui.view_model.audit_choice import (
    SHARE_WORDS,
    audit_choices,
    audit_words,
    rule_of,
    sample_rule,
    share_text,
    share_trouble,
)
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.input_dialog import InputDialog


class AuditFlow(ConsoleScreen):
    """For screens that show one queue in full."""

    @abstractmethod
    def shown_queue(self) -> QueueView | None:
        """The queue a key is about."""

    @work(group="acts", exit_on_error=False)
    async def action_audit(self) -> None:
        queue = self.shown_queue()
        if queue is None:
            return
        rule = await self._chosen_rule(queue)
        if rule is not None:
            await set_audit(self, queue, rule)

    async def _chosen_rule(self, queue: QueueView) -> AuditRule | None:
        now, title = rule_of(queue), f"Runs kept of {one_line(queue.name, 40)}"
        dialog = ChoiceDialog(title, audit_words(now), audit_choices(now), opened_by="A")
        chosen = await self.app.push_screen_wait(dialog)
        if chosen is None:
            return None
        if chosen != Audit.SAMPLE:
            return checked_rule(chosen)
        field = InputDialog(title, SHARE_WORDS, value=share_text(now), check=share_trouble, opened_by="s")
        typed = await self.app.push_screen_wait(field)
        return None if typed is None else sample_rule(typed)
