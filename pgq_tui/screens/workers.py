"""Screen 6: pools and their workers, near and far, and everything about the one under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from pgq_core.domain.snapshot import Overview, PoolView, WorkerView
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.messages import OverviewArrived
from pgq_tui.screens.detail_opening import DetailOpening
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.screens.scale_flow import ScaleFlow
from pgq_tui.screens.verbs import outcome_of
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.detail import Detail, Fact, detail_plain
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.fleet import ended_workers, find_pool, find_worker, total_slots
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.word_filter import words_of
from pgq_tui.view_model.worker_detail import pool_detail, worker_detail
from pgq_tui.view_model.worker_table import WORKER_COLUMNS, worker_rows
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.text_dialog import TextDialog

_NO_WORKERS = "no worker runs and no pool is defined: pgq-core worker --app your_tasks starts one"
LOOSE_WORKERS = Detail(
    "no pool",
    (Fact("workers", "started by hand, or by another supervisor than ours"), Fact("scale", "by whoever started them")),
)


class WorkersScreen(ScaleFlow, DetailOpening, ListScreen):
    """One table of pools and workers, the detail below or beside it."""

    ID = "workers"
    LAYOUT = "stack"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("workers")]
    _wanted = ""
    _words: tuple[str, ...] = ()
    _output: tuple[str, str | None] = ("", None)

    def compose_body(self) -> ComposeResult:
        yield RowTable(WORKER_COLUMNS, empty="looking ...", can_mark=False, id="workers", classes="main")
        yield DetailPane(empty="no worker is selected", id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(RowTable).focus()

    async def look(self) -> None:
        backend = self.session.backend
        overview = await backend.overview(self.session.window)
        worker = self.selected_worker() or self._last_ended()
        if worker is not None and self.query_one("#detail").display:
            self._output = (worker.id, await backend.worker_output(worker.id))
        self.post_message(OverviewArrived(overview))

    def show_overview(self, overview: Overview) -> None:
        table = self.query_one(RowTable)
        table.set_empty(self.empty_words(_NO_WORKERS))
        # The row that somebody was sent to, or looks at, is there also when many others ended after it.
        kept = (self._wanted, table.cursor_key or "")
        table.show_rows(worker_rows(overview, self.palette, words=self._words, kept=kept, glyphs=self.glyphs))
        busy, slots = total_slots(overview)
        live = sum(worker.stopped_at is None for worker in overview.workers)
        pools = plural(len(overview.pools), "pool")
        table.set_title(f"Workers {live} · {pools}", f"{busy}/{slots} slots")
        if self._wanted and table.go_to(self._wanted):
            self._wanted = ""
        self.fit_main(table.row_count)
        self._show_detail()

    def on_resize(self) -> None:
        self.call_after_refresh(self.fit_main, self.query_one(RowTable).row_count)

    def on_row_table_cursor_moved(self) -> None:
        self._show_detail()
        self.poller.kick()
        self.refresh_chrome()

    def _show_detail(self) -> None:
        self.query_one(DetailPane).show(self._detail())

    def _detail(self) -> Detail | None:
        overview, worker = self.session.overview, self.selected_worker()
        if overview is None:
            return None
        zone, glyphs = self.session.zone, self.glyphs
        if worker is not None:
            output = self._output[1] if self._output[0] == worker.id else None
            return worker_detail(worker, overview.taken_at, self.palette, output=output, zone=zone, glyphs=glyphs)
        pool = self.selected_pool()
        if pool is not None:
            ended = self._last_ended()
            output = self._output[1] if ended is not None and self._output[0] == ended.id else None
            return pool_detail(pool, overview, self.palette, ended=ended, output=output, zone=zone, glyphs=glyphs)
        return LOOSE_WORKERS if self.query_one(RowTable).cursor_key else None

    # What keys are about.

    def selected_worker(self) -> WorkerView | None:
        overview, key = self.session.overview, self.query_one(RowTable).cursor_key
        return find_worker(overview, key) if overview and key else None

    def _last_ended(self) -> WorkerView | None:
        """The worker of the selected pool that ended last: its words may say why."""
        overview, pool = self.session.overview, self.selected_pool()
        if overview is None or pool is None:
            return None
        mine = (one for one in overview.workers if (one.host, one.pool) == (pool.host, pool.name))
        return next(iter(ended_workers(mine)), None)

    def selected_pool(self) -> PoolView | None:
        overview, key = self.session.overview, self.query_one(RowTable).cursor_key
        return find_pool(overview, key) if overview and key else None

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
        if not super().is_usable(command):
            return False
        worker = self.selected_worker()
        if command.id in {"scale_up", "scale_down"}:
            return self.selected_pool() is not None
        if command.id in {"drain_worker", "restart_worker"}:
            return worker is not None and worker.stopped_at is None
        return command.id != "log" or worker is not None

    def copy_words(self) -> str:
        detail = self._detail()
        return detail_plain(detail) if detail else ""

    def remark(self) -> str:
        overview = self.session.overview
        if overview is None or not overview.pools:
            return ""
        living = [one for one in overview.supervisors if not one.is_stale]
        return f"supervised on {', '.join(one.host for one in living)}" if living else "no supervisor runs"

    @work(group="acts", exit_on_error=False)
    async def action_drain_worker(self) -> None:
        worker = self._living_worker()
        if worker is None:
            return
        effect = f"It takes no more jobs, finishes {plural(worker.running, 'running job')}, and leaves."
        pool = self.selected_pool()
        note = (
            f"Pool {pool.name} wants {plural(pool.wanted, 'worker')}: its supervisor starts another one."
            if pool
            else ""
        )
        if await self.confirm(Confirmation("Drain worker", f"{worker.id}\n\n{effect}", "drain", note=note), "D"):
            await self._ask_worker(worker, "drain")

    @work(group="acts", exit_on_error=False)
    async def action_restart_worker(self) -> None:
        worker = self._living_worker()
        if worker is None:
            return
        effect = f"It finishes {plural(worker.running, 'running job')} and leaves; another one takes its place."
        if await self.confirm(Confirmation("Restart worker", f"{worker.id}\n\n{effect}", "restart"), "R"):
            await self._ask_worker(worker, "restart")

    def _living_worker(self) -> WorkerView | None:
        worker = self.selected_worker()
        if worker is None or worker.stopped_at is not None:
            self.say("put the cursor on a live worker first", Token.RETRY)
            return None
        return worker

    async def _ask_worker(self, worker: WorkerView, verb: str) -> None:
        async def ask() -> Outcome:
            backend = self.session.backend
            result = await (backend.drain_worker(worker.id) if verb == "drain" else backend.restart_worker(worker.id))
            return outcome_of(result, "it was asked to", can_undo=False)

        await self.perform(f"{verb} {worker.id}", ask)

    def action_open(self) -> None:
        if not self.open_detail() and (words := self.copy_words()):
            self.app.push_screen(TextDialog("Worker", words))

    @work(group="reads", exclusive=True, exit_on_error=False)
    async def action_log(self) -> None:
        worker = self.selected_worker()
        if worker is None:
            self.say("put the cursor on a worker first", Token.RETRY)
            return
        output = await self.read(self.session.backend.worker_output(worker.id))
        if output:
            self.app.push_screen(TextDialog(f"Output of {worker.id}", output))
        else:
            self.say("nothing was kept of what it wrote", Token.RETRY)
