"""Screen 3: the live jobs, page by page, and everything about the one under the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from pgq_core.domain.filters import JobFilters
from pgq_core.domain.snapshot import JobCursor, JobPage, JobRecord, JobView, Overview
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.screens.detail_opening import DetailOpening
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.screens.session import Session
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.detail import Detail, detail_plain
from pgq_tui.view_model.id_columns import fit_ids
from pgq_tui.view_model.job_detail import job_detail
from pgq_tui.view_model.job_table import JOB_COLUMNS, job_row, job_state
from pgq_tui.view_model.list_filter import job_filters
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.results import cancel_words
from pgq_tui.view_model.rows import TableColumn
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.text_dialog import TextDialog


@dataclass
class JobsArrived(Message):
    """A page of live jobs, the filters it was read for, and the selected job."""

    page: JobPage
    filters: JobFilters
    record: JobRecord | None


class JobsScreen(DetailOpening, ListScreen):
    """Live rows by state."""

    ID = "jobs"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("jobs")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._filters = JobFilters()
        self._cursors: list[JobCursor] = []
        self._page: JobPage | None = None
        self._record: JobRecord | None = None
        self._columns: tuple[TableColumn, ...] = JOB_COLUMNS

    def compose_body(self) -> ComposeResult:
        yield RowTable(JOB_COLUMNS, empty="looking ...", can_mark=False, id="jobs", classes="main")
        yield DetailPane(empty="no job is selected", id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(RowTable).focus()

    async def look(self) -> None:
        backend, filters = self.session.backend, self._filters
        page = await backend.jobs(filters, self._cursors[-1] if self._cursors else None)
        job_id = self._selected_id()
        record = await backend.job(job_id) if job_id is not None and self.query_one("#detail").display else None
        self.post_message(JobsArrived(page, filters, record))
        await self.refresh_overview()

    def show_overview(self, overview: Overview) -> None:
        """The rows come from their own look."""

    def on_jobs_arrived(self, message: JobsArrived) -> None:
        if message.filters != self._filters:
            return
        self._page, self._record = message.page, message.record
        table, now = self.query_one(RowTable), self.session.now
        table.set_empty(self.empty_words("no live job: nothing waits and nothing runs"))
        self._fit_columns(message.page)
        table.show_rows(
            job_row(job, now, self.palette, zone=self.session.zone, glyphs=self.glyphs) for job in message.page.jobs
        )
        order = "in the order they will run" if self._filters.status in {"pending", "scheduled"} else "newest first"
        table.set_title(f"Jobs {self._range()}", order)
        self._has_picture = True
        self._show_detail()
        self.refresh_chrome()

    def _fit_columns(self, page: JobPage) -> None:
        columns = fit_ids(JOB_COLUMNS, id=(job.id for job in page.jobs))
        if columns != self._columns:
            self._columns = columns
            self.query_one(RowTable).set_columns(columns)

    def _range(self) -> str:
        """Which page this is, as far as anybody counted."""
        page = self._page
        if page is None:
            return ""
        more = "+" if page.next else ""
        return (
            f"{len(page.jobs)}{more}" if not self._cursors else f"page {len(self._cursors) + 1}: {len(page.jobs)}{more}"
        )

    def on_row_table_cursor_moved(self) -> None:
        self._show_detail()
        self.poller.kick()
        self.refresh_chrome()

    def _show_detail(self) -> None:
        self.query_one(DetailPane).show(self._detail())

    def _detail(self) -> Detail | None:
        record = self._record
        if record is None or record.id != self._selected_id():
            return None
        return job_detail(record, self.session.now, self.palette, zone=self.session.zone, glyphs=self.glyphs)

    # What keys are about.

    def _selected_id(self) -> int | None:
        key = self.query_one(RowTable).cursor_key
        return int(key) if key is not None else None

    def _selected(self) -> JobView | None:
        job_id = self._selected_id()
        jobs = self._page.jobs if self._page else ()
        return next((job for job in jobs if job.id == job_id), None)

    def use_filter(self, line: str) -> None:
        self._filters = job_filters(line)
        self._cursors = []

    def is_usable(self, command: Command) -> bool:
        if command.id in {"cancel_job", "open_detail"}:
            return super().is_usable(command) and self._selected_id() is not None
        if command.id == "older":
            return self._page is not None and self._page.next is not None
        if command.id == "newer":
            return bool(self._cursors)
        return super().is_usable(command)

    def copy_words(self) -> str:
        detail = self._detail()
        return detail_plain(detail) if detail else str(self._selected_id() or "")

    def go_back(self) -> bool:
        if self._cursors:
            self._cursors = []
            self.poller.kick()
            return True
        return super().go_back()

    def action_page(self, step: int) -> None:
        if step < 0 and self._cursors:
            self._cursors.pop()
        elif step > 0 and self._page is not None and self._page.next is not None:
            self._cursors.append(self._page.next)
        else:
            self.say("there is no page in this direction")
            return
        self.poller.kick()

    def action_open(self) -> None:
        self._open()

    @work(group="reads", exclusive=True, exit_on_error=False)
    async def _open(self) -> None:
        job_id = self._selected_id()
        if job_id is None or self.open_detail():
            return
        record = await self.read(self.session.backend.job(job_id))
        if record is not None:
            shown = job_detail(record, self.session.now, self.palette, zone=self.session.zone, glyphs=self.glyphs)
            self.app.push_screen(TextDialog(shown.title, detail_plain(shown)))

    @work(group="acts", exit_on_error=False)
    async def action_cancel_job(self) -> None:
        job = self._selected()
        if job is None:
            return
        if job.status == "running":
            effect = "Its worker is asked to stop it. The handler has to agree; the run may still succeed."
        else:
            effect = "It ends here as cancelled, without running. This cannot be undone."
        what = f"job {job.id} {job.job_type} in {job.queue}, {job_state(job)}"
        if await self.confirm(
            Confirmation("Cancel job", f"{what}\n\n{effect}", "cancel the job", token=Token.FAILED), "X"
        ):
            await self.perform(f"cancel job {job.id}", lambda: cancelled(self, job.id))


async def cancelled(screen: ListScreen, job_id: int) -> Outcome:
    """Cancel one job and say what became of it."""
    result = await screen.session.backend.cancel([job_id])
    return Outcome(cancel_words(result), is_failure=result.refused > 0)
