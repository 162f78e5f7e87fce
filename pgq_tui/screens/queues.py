"""Screen 2: all queues, and everything about the one under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from pgq_core.domain.snapshot import Overview, QueueView
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.messages import GoTo
from pgq_tui.screens.audit_flow import AuditFlow
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.screens.queue_list import QueueList
from pgq_tui.view_model.attention import troubled_queues
from pgq_tui.view_model.detail import detail_plain
from pgq_tui.view_model.list_filter import filter_line
from pgq_tui.view_model.queue_detail import queue_detail
from pgq_tui.view_model.queue_table import NO_QUEUES, QUEUE_COLUMNS
from pgq_tui.view_model.throughput import queue_chart
from pgq_tui.view_model.word_filter import matching_queues, words_of
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.time_chart import TimeChart


class QueuesScreen(QueueList, AuditFlow, ListScreen):
    """A table above, the detail of one queue below or beside it."""

    ID = "queues"
    LAYOUT = "stack"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("queues")]
    _wanted = ""
    _words: tuple[str, ...] = ()

    def compose_body(self) -> ComposeResult:
        yield RowTable(QUEUE_COLUMNS, empty="looking ...", can_mark=False, id="queues", classes="main")
        with Horizontal(classes="below"):
            yield DetailPane(empty="no queue is selected", id="detail")
            yield TimeChart("Finished/s", note="15m", id="flow")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(RowTable).focus()

    def show_overview(self, overview: Overview) -> None:
        shown = matching_queues(overview, self._words, troubled_queues(self.session.attention))
        table = self.show_queues(overview, shown)
        table.set_empty(self.empty_words(NO_QUEUES))
        paused = sum(queue.paused for queue in overview.queues)
        of_all = f" of {len(overview.queues)}" if self._words else ""
        table.set_title(f"Queues {len(shown)}{of_all}", f"{paused} paused" if paused else "")
        if self._wanted and table.go_to(self._wanted):
            self._wanted = ""
        self.fit_main(len(shown))
        self._show_detail()

    def on_resize(self) -> None:
        self.call_after_refresh(self.fit_main, self.query_one(RowTable).row_count)

    def on_row_table_cursor_moved(self) -> None:
        self._show_detail()
        self.refresh_chrome()

    def _show_detail(self) -> None:
        overview, queue = self.session.overview, self.shown_queue()
        shown = None
        if overview and queue:
            shown = queue_detail(queue, overview, self.palette, zone=self.session.zone, glyphs=self.glyphs)
            now = overview.taken_at.astimezone(self.session.zone)
            self.query_one(TimeChart).show(queue_chart(queue, now))
        self.query_one(DetailPane).show(shown)

    def shown_queue(self) -> QueueView | None:
        overview, key = self.session.overview, self.query_one(RowTable).cursor_key
        return next((queue for queue in overview.queues if queue.name == key), None) if overview else None

    def selected_queue(self) -> str | None:
        return self.query_one(RowTable).cursor_key

    def use_filter(self, line: str) -> None:
        self._words = words_of(line)
        if self.session.overview is not None:
            self.show_overview(self.session.overview)

    def show_row(self, key: str) -> None:
        self._wanted = key
        if key not in self.query_one(RowTable).row_keys:
            self.narrow("")
        if self.query_one(RowTable).go_to(key):
            self._wanted = ""

    def is_usable(self, command: Command) -> bool:
        needs_row = command.id in {"pause", "audit", "open_queue", "queue_dead", "queue_runs"}
        return super().is_usable(command) and (not needs_row or self.selected_queue() is not None)

    def copy_words(self) -> str:
        detail = self.query_one(DetailPane).detail
        return detail_plain(detail) if detail else ""

    def remark(self) -> str:
        queue = self.shown_queue()
        return f'paused: "{queue.pause_reason}"' if queue and queue.paused and queue.pause_reason else ""

    def action_open(self) -> None:
        self._go("jobs")

    def action_queue_dead(self) -> None:
        self._go("dead")

    def action_queue_runs(self) -> None:
        self._go("runs")

    def _go(self, screen: str) -> None:
        if name := self.selected_queue():
            self.post_message(GoTo(screen, filter_line=filter_line(queue=name)))
