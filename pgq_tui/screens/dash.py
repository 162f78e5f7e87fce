"""Screen 1: how fast it goes, what waits, who works, and what needs somebody."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from pgq_core.domain.snapshot import Overview, PoolView
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.messages import GoTo
from pgq_tui.screens.framed_screen import FRAME_AND_HEADER
from pgq_tui.screens.queue_list import QueueList
from pgq_tui.screens.scale_flow import ScaleFlow
from pgq_tui.view_model.attention import Severity
from pgq_tui.view_model.attention_table import ATTENTION_COLUMNS, attention_row
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.fleet import find_pool, total_slots
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.queue_table import NO_QUEUES, QUEUE_COLUMNS
from pgq_tui.view_model.throughput import run_time_chart, throughput_chart
from pgq_tui.view_model.times import format_duration
from pgq_tui.view_model.windows import next_window, window_label
from pgq_tui.view_model.worker_table import PANE_COLUMNS, pane_rows
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.time_chart import TimeChart

FEWEST_QUEUE_LINES = 4
MOST_ATTENTION_LINES = 3
MOST_ATTENTION_LINES_TALL = 5
_ALL_WELL = "all is well: nothing fails, nothing waits too long, no worker is missing"
_NOTHING_YET = "nothing here yet: enqueue a job, start a worker"


class DashScreen(QueueList, ScaleFlow):
    """The whole system on one screen."""

    ID = "dash"
    LAYOUT = "grid"
    _grid_rows = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dash")]

    def compose_body(self) -> ComposeResult:
        yield TimeChart("Throughput/s", id="throughput")
        yield RowTable(ATTENTION_COLUMNS, empty="looking ...", can_mark=False, id="attention")
        yield TimeChart("Run time", format_value=format_duration, id="runtime")
        yield RowTable(PANE_COLUMNS, empty="looking ...", can_mark=False, id="pools")
        yield RowTable(QUEUE_COLUMNS, empty="looking ...", can_mark=False, id="queues", classes="main")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#attention", RowTable).show_header = False
        for chart in self.query(TimeChart):
            chart.set_note(window_label(self.session.window))
        self.query_one("#queues").focus()

    def show_overview(self, overview: Overview) -> None:
        session = self.session
        window, now = session.window, overview.taken_at.astimezone(session.zone)
        self.query_one("#throughput", TimeChart).show(throughput_chart(overview.throughput, now, window))
        self.query_one("#runtime", TimeChart).show(run_time_chart(overview.throughput, now, window))
        self._show_attention()
        self._show_pools(overview)
        queues = self.show_queues(overview, overview.queues)
        queues.set_empty(NO_QUEUES)
        queues.set_title(f"Queues {len(overview.queues)}", "enter open · p pause")
        self._fit_rows(len(overview.queues))

    def _show_attention(self) -> None:
        table, found = self.query_one("#attention", RowTable), self.session.attention
        overview = self.session.overview
        is_new = overview is not None and not overview.queues and not overview.workers
        table.set_empty(_NOTHING_YET if is_new else f"{self.glyphs.icons['ok']} {_ALL_WELL}")
        table.show_rows(attention_row(one, self.palette, glyphs=self.glyphs) for one in found)
        critical = sum(one.severity is Severity.CRITICAL for one in found)
        table.set_title(f"Needs attention {len(found)}", f"{critical} critical" if critical else "")

    def _show_pools(self, overview: Overview) -> None:
        table = self.query_one("#pools", RowTable)
        busy, slots = total_slots(overview)
        rows = pane_rows(overview, self.palette, glyphs=self.glyphs)
        table.set_empty("no worker runs yet")
        table.show_rows(rows)
        live = sum(worker.stopped_at is None for worker in overview.workers)
        table.set_title(f"Workers {live}", f"{busy}/{slots} slots", f"{busy}/{slots}")

    def _fit_rows(self, queues: int) -> None:
        """The queues get the lines they need, at most half of the screen; the charts get the rest."""
        body = self.query_one("#body")
        least = FEWEST_QUEUE_LINES + FRAME_AND_HEADER
        height = min(max(queues + FRAME_AND_HEADER, least), max(body.size.height // 2, least))
        has_room = self.has_class("-wide") and self.has_class("-tall")
        rows = f"1fr 1fr {height}" if has_room else f"1fr {height}"
        if rows != self._grid_rows:
            self._grid_rows = rows
            body.styles.grid_rows = rows
        found = self.query_one("#attention", RowTable)
        most = MOST_ATTENTION_LINES_TALL if self.has_class("-tall") else MOST_ATTENTION_LINES
        if not has_room:
            found.styles.height = min(max(found.row_count, 1), most)
        else:
            found.styles.clear_rule("height")

    def on_resize(self) -> None:
        if self.session.overview:
            self.call_after_refresh(self._fit_rows, len(self.session.overview.queues))

    # What keys are about.

    def selected_queue(self) -> str | None:
        return self.query_one("#queues", RowTable).cursor_key

    def selected_pool(self) -> PoolView | None:
        """The pool under the cursor; in the other panes the one that the row is about, when there is only one."""
        pools = self._meant_pools()
        return pools[0] if len(pools) == 1 else None

    def _meant_pools(self) -> list[PoolView]:
        overview, focused = self.session.overview, self.focused
        if overview is None or not isinstance(focused, RowTable) or focused.cursor_key is None:
            return []
        key = focused.cursor_key
        if focused.id == "attention":
            found = next((one for one in self.session.attention if one.key == key), None)
            key = found.target if found else ""
        pool = find_pool(overview, key)
        return [pool] if pool else [one for one in overview.pools if key in one.queues]

    def why_no_pool(self) -> str:
        pools = self._meant_pools()
        if pools:
            names = ", ".join(pool.name for pool in pools)
            return f"{self.selected_queue()} is served by {names}: tab to the Workers pane and choose one"
        return "no pool serves this: tab to the Workers pane and choose one"

    def copy_words(self) -> str:
        focused = self.focused
        if not isinstance(focused, RowTable) or focused.cursor_key is None:
            return ""
        found = next((one for one in self.session.attention if one.key == focused.cursor_key), None)
        return f"{found.subject}: {found.text}" if found and focused.id == "attention" else focused.cursor_key

    def remark(self) -> str:
        overview = self.session.overview
        if overview is None:
            return ""
        found = self.session.attention
        is_cut = len(found) > self.query_one("#attention").size.height > 0
        if is_cut:
            return f"{len(found)} need attention, ! goes there"
        return f"PostgreSQL {overview.server.version} · {plural(len(overview.queues), 'queue')}"

    def is_usable(self, command: Command) -> bool:
        if command.id in {"scale_up", "scale_down"}:
            return super().is_usable(command) and self.selected_pool() is not None
        if command.id == "pause":
            return super().is_usable(command) and self.selected_queue() is not None
        return super().is_usable(command)

    def on_row_table_cursor_moved(self) -> None:
        self.refresh_chrome()

    def action_trouble(self) -> None:
        self.query_one("#attention").focus()

    def action_find_queue(self) -> None:
        self.ask("find queue", sign="/", value="", suggestions=self._queue_names())

    def _queue_names(self) -> tuple[str, ...]:
        return tuple(queue.name for queue in self.session.overview.queues) if self.session.overview else ()

    def prompt_submitted(self, kind: str, text: str) -> None:
        if kind == "find queue":
            self.post_message(GoTo("queues", filter_line=text))
        else:
            super().prompt_submitted(kind, text)

    def action_open(self) -> None:
        focused = self.focused
        if not isinstance(focused, RowTable) or focused.cursor_key is None:
            return
        if focused.id == "attention":
            found = next((one for one in self.session.attention if one.key == focused.cursor_key), None)
            if found is not None and found.screen != self.ID:
                self.post_message(GoTo(found.screen, found.target))
        else:
            self.post_message(GoTo("workers" if focused.id == "pools" else "queues", focused.cursor_key))

    def action_window(self, step: int) -> None:
        session = self.session
        session.window = next_window(session.window, step)
        for chart in self.query(TimeChart):
            chart.set_note(window_label(session.window))
        self.say(f"the last {window_label(session.window)}", Token.TEXT)
        self.poller.kick()
