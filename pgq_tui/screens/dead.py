"""Screen 5: dead letters one by one or by kind of failure, with what there is to know and to do about them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.snapshot import DeadGroup, DeadLetterView, Overview
from pgq_tui.command_list import Command
from pgq_tui.commands import bindings
from pgq_tui.screens.dead_flow import DeadFlow
from pgq_tui.screens.dead_look import DeadArrived, DeadQuestion, look_at
from pgq_tui.screens.detail_opening import DetailOpening
from pgq_tui.screens.session import Session
from pgq_tui.view_model.dead_table import GROUP_COLUMNS, LETTER_COLUMNS, group_key, group_row, letter_row
from pgq_tui.view_model.detail import Detail, detail_plain
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.id_columns import fit_ids
from pgq_tui.view_model.letter_detail import group_detail, letter_detail
from pgq_tui.view_model.list_filter import dead_filters
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.queue_table import count_text
from pgq_tui.view_model.rows import TableColumn
from pgq_tui.view_model.times import format_age
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.text_dialog import TextDialog


class DeadScreen(DetailOpening, DeadFlow):
    """The list, and beside it the error, traceback, payload and attempts of one letter."""

    ID = "dead"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dead")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._filters = DeadLetterFilters()
        self._befores: list[int] = []
        self._is_grouped = False
        self._answer: DeadArrived | None = None
        self._columns: tuple[TableColumn, ...] = LETTER_COLUMNS
        self._outages = 0
        """Outages that the marks are known to have survived."""

    def compose_body(self) -> ComposeResult:
        yield RowTable(LETTER_COLUMNS, empty="looking ...", id="letters", classes="main")
        yield DetailPane(empty="no dead letter is selected", id="detail")

    def on_mount(self) -> None:
        super().on_mount()
        self.table.focus()

    @property
    def table(self) -> RowTable:
        return self.query_one(RowTable)

    @property
    def is_grouped(self) -> bool:
        return self._is_grouped

    @property
    def filters(self) -> DeadLetterFilters:
        return self._filters

    async def look(self) -> None:
        before = self._befores[-1] if self._befores else None
        question = DeadQuestion(self._filters, before, self._is_grouped, checks_marks=self._are_marks_in_doubt)
        self.post_message(await look_at(self.session.backend, question, self.table.cursor_key))
        await self.refresh_overview()

    def show_overview(self, overview: Overview) -> None:
        """The rows come from their own look."""

    def look_failed(self) -> None:
        self._show_title()

    def on_dead_arrived(self, message: DeadArrived) -> None:
        if (message.question.filters, message.question.is_grouped) != (self._filters, self._is_grouped):
            return
        self._answer = message
        self._has_picture = True
        if message.alive is not None or not self.table.marks:
            self._keep_marks(message.alive or frozenset())
        now, zone, glyphs = self.session.now, self.session.zone, self.glyphs
        self.table.set_empty(self.empty_words(self._why_empty()))
        self._fit_columns(message)
        if self._is_grouped:
            rows = [group_row(group, now, self.palette, zone=zone, glyphs=glyphs) for group in message.groups]
        else:
            rows = [letter_row(letter, now, self.palette, zone=zone, glyphs=glyphs) for letter in message.letters]
        self.table.show_rows(rows)
        self._fit()
        self._show_title()
        self._show_detail()
        self.refresh_chrome()

    @property
    def _are_marks_in_doubt(self) -> bool:
        """Whether the database went away since they were made: somebody else may have dealt with the rows."""
        return bool(self.table.marks) and self._outages != self.session.link.outages

    def _keep_marks(self, alive: frozenset[str]) -> None:
        marks = len(self.table.marks)
        self._outages = self.session.link.outages
        self.table.keep_marks(alive)
        if gone := marks - len(self.table.marks):
            what = plural(gone, "mark")
            self.say(f"{what} taken away: no dead letter any more since the outage", Token.RETRY)

    def _fit_columns(self, message: DeadArrived) -> None:
        letters = message.letters
        ids = {"id": (one.id for one in letters), "job": (one.original_job_id for one in letters)}
        columns = GROUP_COLUMNS if self._is_grouped else fit_ids(LETTER_COLUMNS, **ids)
        if columns != self._columns:
            self._columns = columns
            self.table.set_columns(columns)

    def _fit(self) -> None:
        """Kinds are few and need width for their errors; letters are many."""
        self.set_class(self._is_grouped, "-grouped")
        if self._is_grouped:
            self.fit_main(self.table.row_count)
        else:
            self.table.styles.clear_rule("height")

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _why_empty(self) -> str:
        runs = self.session.overview.throughput if self.session.overview else ()
        last = max((point.at for point in runs if point.dead), default=None)
        when = f", the last one died {format_age(self.session.now - last)}" if last else ""
        return f"{self.glyphs.icons['ok']} no dead letters{when}"

    def _show_title(self) -> None:
        answer = self._answer
        if answer is None:
            return
        page = f"page {len(self._befores) + 1} · " if self._befores else ""
        if self._is_grouped:
            self.table.set_title(
                f"Kinds of failure {len(answer.groups)}", f"{count_text(answer.total)} dead · V one by one"
            )
        else:
            self.table.set_title(
                f"Dead letters {count_text(answer.total)}", f"{page}newest first · V kinds", f"{page}V kinds"
            )
        marks = len(self.table.marks)
        doubt = " before the outage" if self._are_marks_in_doubt else ""
        self.table.set_footer(f"{self.glyphs.icons['marked']} {marks:,} marked{doubt}" if marks else "")

    def _show_detail(self) -> None:
        self.query_one(DetailPane).show(self._detail())

    def _detail(self) -> Detail | None:
        answer, key = self._answer, self.table.cursor_key
        if answer is None or key is None:
            return None
        now, zone, glyphs = self.session.now, self.session.zone, self.glyphs
        if self._is_grouped:
            group = next((one for one in answer.groups if group_key(one) == key), None)
            if group is None:
                return None
            members = answer.members[1] if answer.members and answer.members[0] == key else ()
            return group_detail(group, members, now, self.palette, zone=zone, glyphs=glyphs)
        if answer.letter is None or str(answer.letter.letter.id) != key:
            return None
        return letter_detail(answer.letter, now, self.palette, zone=zone, glyphs=glyphs)

    def on_row_table_cursor_moved(self) -> None:
        self._show_detail()
        self.poller.kick()
        self.refresh_chrome()

    def on_row_table_marks_changed(self) -> None:
        self._show_title()
        self.refresh_chrome()

    # What keys are about.

    def known_letters(self) -> dict[int, DeadLetterView]:
        return {letter.id: letter for letter in self._answer.letters} if self._answer else {}

    def known_groups(self) -> dict[str, DeadGroup]:
        return {group_key(group): group for group in self._answer.groups} if self._answer else {}

    def use_filter(self, line: str) -> None:
        self._filters = dead_filters(line)
        self._befores = []
        self.table.clear_marks()
        if self._is_grouped:
            self._show_as(grouped=False)

    def labels(self) -> dict[str, str]:
        labels = {**super().labels(), "groups": "one by one" if self._is_grouped else "kinds"}
        return {**labels, "open_detail": "its letters"} if self._is_grouped and not self.is_in_detail else labels

    def is_usable(self, command: Command) -> bool:
        if command.id == "fold":
            return not self._is_grouped
        if command.id in {"replay", "discard", "open_detail", "mark", "mark_page", "mark_all"}:
            return super().is_usable(command) and bool(self.table.row_keys)
        if command.id == "clear_marks":
            return bool(self.table.marks)
        if command.id == "older":
            return self._next_before() is not None
        if command.id == "newer":
            return bool(self._befores)
        return super().is_usable(command)

    def _next_before(self) -> int | None:
        """Where the next page begins; None when this one is not full."""
        letters = self._answer.letters if self._answer else ()
        return letters[-1].id if len(letters) >= self.page_size else None

    def copy_words(self) -> str:
        detail = self._detail()
        return detail_plain(detail) if detail else ""

    def remark(self) -> str:
        marks = len(self.table.marks)
        doubt = " before the outage" if self._are_marks_in_doubt else ""
        return f"{plural(marks, 'kind' if self._is_grouped else 'letter')} marked{doubt}" if marks else ""

    def go_back(self) -> bool:
        if self.table.marks:
            self.table.clear_marks()
            return True
        if self._befores:
            self._befores = []
            self.poller.kick()
            return True
        return super().go_back()

    def action_page(self, step: int) -> None:
        if step < 0 and self._befores:
            self._befores.pop()
        elif step > 0 and (before := self._next_before()) is not None:
            self._befores.append(before)
        else:
            self.say("there is no page in this direction")
            return
        self.poller.kick()

    def action_toggle_groups(self) -> None:
        self._show_as(grouped=not self._is_grouped)

    def _show_as(self, *, grouped: bool) -> None:
        self._is_grouped = grouped
        self._answer = None
        self._befores = []
        if grouped:
            self.filter_line, self._filters = "", DeadLetterFilters()
        self.table.clear_marks()
        self._columns = GROUP_COLUMNS if grouped else LETTER_COLUMNS
        self.table.set_columns(self._columns)
        self.table.show_rows([])
        self._show_detail()
        self.poller.kick()
        self.refresh_chrome()

    def action_toggle_fold(self) -> None:
        self.query_one(DetailPane).action_fold()

    def action_mark(self) -> None:
        self.table.action_toggle_mark()

    def action_mark_page(self) -> None:
        self.table.mark_shown()

    def action_clear_marks(self) -> None:
        self.table.clear_marks()

    def action_open(self) -> None:
        if self._is_grouped and not self.is_in_detail:
            self._open_group()
        elif not self.open_detail() and (words := self.copy_words()):
            self.app.push_screen(TextDialog("Dead letter", words))

    def _open_group(self) -> None:
        group = self.known_groups().get(self.table.cursor_key or "")
        if group is None:
            return
        self._show_as(grouped=False)
        self.filter_line = f"fp:{group.fingerprint or 'none'}"
        self._filters = replace(DeadLetterFilters(), fingerprint=group.fingerprint or "")
        self.poller.kick()
