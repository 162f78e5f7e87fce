"""Screen 4: what runs now on top, what has just ended below as a live tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from pgq_core.domain.filters import RunFilters
from pgq_core.domain.job import Outcome as RunOutcome
from pgq_core.domain.snapshot import Overview, RunningView, RunView
from pgq_core.domain.tail import RunTail
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.screens.jobs import cancelled
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.screens.session import Session
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.detail import Detail, detail_plain
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.job_detail import job_detail, run_detail
from pgq_tui.view_model.job_table import RUNNING_COLUMNS, running_row
from pgq_tui.view_model.list_filter import run_filters
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.run_lines import RunRecord
from pgq_tui.view_model.tail_record import TailOptions, TimeFormat
from pgq_tui.view_model.times import format_clock
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.tail_view import TailView
from pgq_tui.widgets.text_dialog import TextDialog

FIRST_LOOK = 500
MOST_AT_ONCE = 1_000
MOST_RUNNING = 200
_FAILED = frozenset(one.value for one in RunOutcome if one is not RunOutcome.SUCCEEDED)


@dataclass
class RunsArrived(Message):
    """New closed runs, and what runs now."""

    runs: tuple[RunView, ...]
    running: tuple[RunningView, ...]
    filters: RunFilters
    followed: RunTail | None
    """The tail it goes on from; None for a first look."""


class RunsScreen(ListScreen):
    """A tail over `job_runs`; rows that run now are pinned above it."""

    ID = "runs"
    LAYOUT = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("runs")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._filters = RunFilters()
        self._run_tail: RunTail | None = None
        self._times = TimeFormat.UTC if self.session.zone is not None else TimeFormat.LOCAL
        self._only_failures = False
        self._markers = 0

    def compose_body(self) -> ComposeResult:
        yield RowTable(RUNNING_COLUMNS, empty="looking ...", can_mark=False, id="running")
        yield TailView("Runs", id="tail", classes="main")

    def on_mount(self) -> None:
        super().on_mount()
        self._set_times(self._times)
        self.tail.focus()

    @property
    def tail(self) -> TailView:
        return self.query_one(TailView)

    async def look(self) -> None:
        backend, filters, followed = self.session.backend, self._filters, self._run_tail
        if followed is None:
            runs = await backend.latest_runs(FIRST_LOOK, filters)
        else:
            runs = await backend.runs_after(followed.last_id, followed.seen, MOST_AT_ONCE, filters)
        running = await backend.running_jobs(filters, MOST_RUNNING)
        self.post_message(RunsArrived(runs, running, filters, followed))
        await self.refresh_overview()

    def show_overview(self, overview: Overview) -> None:
        """The lines come from their own look."""

    def on_runs_arrived(self, message: RunsArrived) -> None:
        if message.filters != self._filters or message.followed is not self._run_tail:
            return
        if self._run_tail is None:
            self._run_tail = RunTail()
            self.tail.clear()
        self.tail.set_empty(self.empty_words("nothing yet"))
        self.tail.extend(RunRecord(run) for run in self._run_tail.fresh(message.runs))
        self._show_running(message.running)
        self._has_picture = True
        self.refresh_chrome()

    def _show_running(self, running: tuple[RunningView, ...]) -> None:
        table, now = self.query_one(RowTable), self.session.now
        table.set_empty(self.empty_words("nothing runs at this moment"))
        table.show_rows(running_row(run, now, self.palette, glyphs=self.glyphs) for run in running)
        more = "+" if len(running) >= MOST_RUNNING else ""
        table.set_title(f"Running now {len(running)}{more}", "longest first")

    # What keys are about.

    def use_filter(self, line: str) -> None:
        self._filters = run_filters(line)
        self._run_tail = None

    def crumb(self) -> str:
        return super().crumb() + (" · failures" if self._only_failures else "")

    def remark(self) -> str:
        return plural(self.tail.line_count, "line") if self.is_mounted else ""

    def is_usable(self, command: Command) -> bool:
        if command.id == "cancel_job":
            return super().is_usable(command) and self._running_id() is not None
        return super().is_usable(command)

    def go_back(self) -> bool:
        if self.tail.hits:
            self.tail.find("")
            return True
        return super().go_back()

    def copy_words(self) -> str:
        if (job_id := self._running_id()) is not None:
            return str(job_id)
        record = self.tail.cursor_record
        return record.search_text if record else ""

    def prompt_submitted(self, kind: str, text: str) -> None:
        if kind == "find":
            # How many there are stands in the title alone, which goes with the lines.
            found = self.tail.find(text) > 0
            self.say(("n and N go on" if found else "no line here holds these words") if text else "")
        else:
            super().prompt_submitted(kind, text)

    def _running_id(self) -> int | None:
        """The running job under the cursor, when that pane has the focus."""
        table = self.query_one(RowTable)
        return int(table.cursor_key) if self.focused is table and table.cursor_key else None

    def on_tail_view_selected(self, message: TailView.Selected) -> None:
        message.stop()
        self.action_open()

    def action_open(self) -> None:
        self._open()

    @work(group="reads", exclusive=True, exit_on_error=False)
    async def _open(self) -> None:
        detail = await self._opened()
        if detail is not None:
            self.app.push_screen(TextDialog(detail.title, detail_plain(detail)))

    async def _opened(self) -> Detail | None:
        backend, zone, glyphs = self.session.backend, self.session.zone, self.glyphs
        if (job_id := self._running_id()) is not None:
            record = await self.read(backend.job(job_id))
            return job_detail(record, self.session.now, self.palette, zone=zone, glyphs=glyphs) if record else None
        line = self.tail.cursor_record
        if not isinstance(line, RunRecord):
            return None
        run = await self.read(backend.run(line.run.id))
        if run is None:
            return None
        record = await self.read(backend.job(run.run.job_id))
        return run_detail(run, record, self.session.now, self.palette, zone=zone, glyphs=glyphs)

    @work(group="acts", exit_on_error=False)
    async def action_cancel_job(self) -> None:
        job_id = self._running_id()
        if job_id is None:
            self.say("put the cursor on a running job first: tab goes there", Token.RETRY)
            return
        effect = f"job {job_id}\n\nIts worker is asked to stop it. The handler has to agree; the run may still succeed."
        if await self.confirm(Confirmation("Cancel job", effect, "ask it to stop", token=Token.FAILED), "X"):
            await self.perform(f"cancel job {job_id}", lambda: cancelled(self, job_id))

    def action_follow(self) -> None:
        self.tail.action_follow()

    def action_hold(self) -> None:
        self.tail.action_follow()

    def action_hit(self, direction: int) -> None:
        self.tail.action_find(direction)

    def action_find(self) -> None:
        self.ask("find", sign="&")

    def action_level(self) -> None:
        self._only_failures = not self._only_failures
        self.tail.set_levels(_FAILED if self._only_failures else None)
        self.say("only runs that did not succeed" if self._only_failures else "all runs")

    def action_times(self) -> None:
        order = list(TimeFormat)
        self._set_times(order[(order.index(self._times) + 1) % len(order)])
        self.say(f"times: {self._times.value}")

    def _set_times(self, times: TimeFormat) -> None:
        self._times = times
        now = self.session.now if times is TimeFormat.RELATIVE else None
        self.tail.set_options(TailOptions(times, zone=self.session.zone, now=now))

    def action_marker(self) -> None:
        self._markers += 1
        self.tail.draw_rule(f"marker {self._markers}", format_clock(self.session.now, self.session.zone))
