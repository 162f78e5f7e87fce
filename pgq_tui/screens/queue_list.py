"""The table of queues, on the dashboard and on its own screen, in the order the operator chose."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.domain.snapshot import Overview, QueueView
from pgq_tui.screens.pause_flow import PauseFlow
from pgq_tui.view_model.attention import troubled_queues
from pgq_tui.view_model.queue_order import QueueOrder
from pgq_tui.view_model.queue_table import queue_row
from pgq_tui.widgets.row_table import RowTable


class QueueList(PauseFlow):
    """For screens with a table called `queues`."""

    def show_queues(self, overview: Overview, queues: Sequence[QueueView]) -> RowTable:
        """Fill the table, sorted."""
        table, order = self.query_one("#queues", RowTable), self.session.queue_order
        in_trouble = troubled_queues(self.session.attention)
        table.show_sort("" if order.is_usual else order.column, is_descending=order.is_descending)
        table.show_rows(
            queue_row(queue, overview.taken_at, self.palette, in_trouble=in_trouble, glyphs=self.glyphs)
            for queue in order.sort(queues)
        )
        return table

    def action_sort(self, step: int) -> None:
        self._sort(self.session.queue_order.next(step))

    def action_turn_order(self) -> None:
        self._sort(self.session.queue_order.turned())

    def _sort(self, order: QueueOrder) -> None:
        self.session.queue_order = order
        if self.session.overview is not None:
            self.show_overview(self.session.overview)
        self.say(order.words)
