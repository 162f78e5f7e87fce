"""What every screen of the console is: bars around a body, one poller, and the commands that work everywhere."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from typing import ClassVar, TypeVar

import psycopg
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import DataTable, Static
from textual.worker import Worker, WorkerState

from pgq_core.domain.snapshot import Overview
from pgq_core.errors import DatabaseUnavailable, PgqError
from pgq_tui.command_list import SCREENS, Command
from pgq_tui.commands import bindings, commands_on, help_rows, key_hints
from pgq_tui.messages import CommandTyped, GoTo, OverviewArrived
from pgq_tui.screens.banner import Banner
from pgq_tui.screens.clipboard import copied_words
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.link import cause, lost_words
from pgq_tui.screens.notice import Notice, NoticeView, error_notice
from pgq_tui.screens.poller import Poller
from pgq_tui.screens.prompt import Prompt
from pgq_tui.screens.session import Session
from pgq_tui.screens.suggestions import suggestions
from pgq_tui.theme import glyphs_of, palette_of
from pgq_tui.view_model.chrome import Confirmation, HeaderView, Link, StatusView, Tab, TabsView
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.headline import alert_tabs, counters
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.times import format_clock
from pgq_tui.widgets.confirm_dialog import ConfirmDialog
from pgq_tui.widgets.help_overlay import HelpOverlay
from pgq_tui.widgets.status_bar import HeaderBar, KeyHints, StatusLine, TabStrip
from pgq_tui.widgets.text_dialog import LONGEST_COPY

logger = logging.getLogger(__name__)
T = TypeVar("T")

MESSAGE_SECONDS = 10.0
FRAME_AND_HEADER = 3
CHROME_OVERVIEW_SECONDS = 3.0
"""How old the numbers of the header may be on screens that do not show the overview themselves."""


class ConsoleScreen(Screen[None]):
    """Subclasses say what stands in the body, what one look reads, and how an overview changes the picture."""

    ID: ClassVar[str] = ""
    LAYOUT: ClassVar[str] = "split"
    """Class of the body: how the panes are laid out."""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it without ClassVar
        (0, "-thin"),
        (40, "-slim"),
        (80, "-narrow"),
        (100, "-mid"),
        (140, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-short"), (20, "-low"), (34, "-tall")]  # noqa: RUF012 - as above

    def __init__(self, session: Session) -> None:
        super().__init__(classes="console")
        self.session = session
        self.is_frozen = False
        self._has_picture = False
        self._message = ("", Token.TEXT, 0.0)
        self._shown_can_write: bool | None = None
        self.poller = Poller(
            self.look,
            interval=lambda: session.interval,
            on_success=self._look_worked,
            on_failure=self._look_failed,
            clock=session.monotonic,
        )

    # What subclasses say.

    @abstractmethod
    def compose_body(self) -> ComposeResult:
        """The panes."""

    async def look(self) -> None:
        """One read; answers go through messages, so that they are shown in the order they came."""
        self.post_message(OverviewArrived(await self.session.backend.overview(self.session.window)))

    def show_overview(self, overview: Overview) -> None:
        """Change the picture."""

    def remark(self) -> str:
        """What stands at the right of the status line."""
        return ""

    def crumb(self) -> str:
        """Where in the screen we are."""
        return next(screen.title for screen in SCREENS if screen.id == self.ID)

    def copy_words(self) -> str:
        """What the copy key gives to the clipboard."""
        return ""

    def is_usable(self, command: Command) -> bool:
        """Whether a command makes sense at this moment; subclasses look at what is selected."""
        return not command.is_mutating or self.session.can_write

    def go_back(self) -> bool:
        """Close or clear what is open; false when nothing was."""
        return False

    def show_row(self, key: str) -> None:
        """Another screen sent the operator to this row."""

    def show_filtered(self, line: str) -> None:
        """Another screen sent the operator to the rows that this filter line keeps."""

    # The common life.

    @property
    def palette(self) -> Palette:
        return palette_of(self.app)

    @property
    def glyphs(self) -> Glyphs:
        return glyphs_of(self.app)

    def compose(self) -> ComposeResult:
        yield HeaderBar(id="header")
        yield TabStrip(id="tabs")
        yield Banner(id="banner")
        yield Notice(id="notice")
        yield Static("enlarge to 40x10", id="too-small", markup=False)
        with Container(id="body", classes=self.LAYOUT):
            yield from self.compose_body()
        yield Prompt(id="prompt")
        yield StatusLine(id="status")
        yield KeyHints(id="hints")

    def on_mount(self) -> None:
        self._poll()
        self.set_interval(1.0, self._tick)

    @work(group="poll", exclusive=True, exit_on_error=False)
    async def _poll(self) -> None:
        await self.poller.run()

    def on_screen_resume(self) -> None:
        if self.session.overview is not None:
            self.post_message(OverviewArrived(self.session.overview))
        if not self.is_frozen:
            self.poller.watch()
        self.refresh_chrome()

    def on_screen_suspend(self) -> None:
        # A dialog on top suspends the screen too; only a screen that nobody can see rests.
        if self not in self.app.screen_stack:
            self.poller.rest()

    def on_overview_arrived(self, message: OverviewArrived) -> None:
        if message.overview is not self.session.overview:
            self.session.remember(message.overview)
        self._has_picture = True
        with self.app.batch_update():
            self.show_overview(message.overview)
            self.refresh_chrome()

    async def refresh_overview(self) -> None:
        """For looks that read something else: keep the numbers of the header young enough."""
        if self.session.overview_age > CHROME_OVERVIEW_SECONDS:
            overview = await self.session.backend.overview(self.session.window)
            self.post_message(OverviewArrived(overview))

    def _look_worked(self, seconds: float) -> None:
        self.session.link.succeeded(self.session.monotonic(), seconds)
        self.refresh_chrome()

    def _look_failed(self, error: Exception, is_outage: bool, retry_in: float) -> None:
        self.session.link.failed(self.session.monotonic(), error, retry_in, is_outage=is_outage)
        self.refresh_chrome()

    def _tick(self) -> None:
        if self.is_current or self in self.app.screen_stack:
            self.refresh_chrome()

    # The bars.

    def refresh_chrome(self) -> None:
        """Bring all bars up to date; each paints only what changed."""
        if not self.is_mounted:
            return
        session = self.session
        at = session.monotonic()
        self.query_one(HeaderBar).show(self._header())
        self.query_one(TabStrip).show(TabsView(self._tabs(), self.ID, self.crumb()))
        self.query_one(StatusLine).show(self._status(at))
        notice = self._notice()
        self.query_one(Notice).say(notice)
        self.query_one(Banner).say("" if notice else session.link.banner(at))
        self.set_class(notice is not None, "-notice")
        self.set_class(session.link.error is not None, "-dim")
        if self._shown_can_write != session.can_write:
            self._shown_can_write = session.can_write
            self.refresh_bindings()
        self.query_one(KeyHints).show(tuple(key_hints(self.ID, self.usable_ids())))

    def _header(self) -> HeaderView:
        session = self.session
        overview = session.overview
        return HeaderView(
            context=session.context,
            database=session.backend.address,
            is_read_only=session.is_read_only or session.backend.is_read_only,
            ping_seconds=overview.server.ping if overview else None,
            is_connected=not session.link.is_outage,
            counters=counters(overview, self.glyphs) if overview else (),
            refresh_seconds=session.interval,
            now=session.now if overview else None,
            zone=session.zone,
        )

    def _tabs(self) -> tuple[Tab, ...]:
        tabs = tuple(Tab(screen.id, screen.number, screen.label) for screen in SCREENS)
        return alert_tabs(tabs, self.session.attention)

    def _status(self, at: float) -> StatusView:
        session = self.session
        link = session.link.state(at, session.interval, is_frozen=self.is_frozen)
        message, token, until = self._message
        return StatusView(
            link,
            age_seconds=self._shown_age(link, at),
            detail=self._shown_moment(link),
            message=message if at < until else "",
            message_token=token,
            right=self.remark(),
        )

    def _shown_age(self, link: Link, at: float) -> float | None:
        match link:
            case Link.LIVE:
                return None
            case Link.LOADING:
                return at - self.session.started_at
            case Link.LOST:
                since = self.session.link.failed_since
                return None if since is None else at - since
            case _:
                return self.session.link.age(at)

    def _shown_moment(self, link: Link) -> str:
        overview = self.session.overview
        if link in {Link.LIVE, Link.LOADING} or overview is None:
            return ""
        return f"data from {format_clock(overview.taken_at, self.session.zone)}"

    def _notice(self) -> NoticeView | None:
        error = self.session.link.error
        return error_notice(error) if error is not None and not self._has_picture else None

    def say(self, words: str, token: Token = Token.TEXT) -> None:
        """A sentence in the status line, for a while."""
        self._message = (words, token, self.session.monotonic() + MESSAGE_SECONDS)
        self.refresh_chrome()

    # Commands that may be used now.

    def usable_ids(self) -> Iterator[str]:
        return (one.id for one in commands_on(self.ID) if self.is_usable(one))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """A read-only console has no mutating keys; while the database is away they do nothing."""
        for one in commands_on(self.ID):
            if (
                one.action.partition("(")[0].removeprefix("app.") == action
                and one.is_mutating
                and not self.session.can_write
            ):
                return False if self.session.is_read_only else None
        return True

    async def run_command(self, action: str) -> None:
        """Do what a key would do: for hints, help, palette and the command line."""
        name = action.partition("(")[0].removeprefix("app.")
        if self.check_action(name, ()) is not True:
            self.say(self.why_not(), Token.RETRY)
            return
        await self.run_action(action)

    def why_not(self) -> str:
        """Why nothing can be changed now."""
        if self.session.is_read_only or self.session.backend.is_read_only:
            return "this console is read-only: start it without --read-only to change anything"
        return "nothing can be changed while the database is away"

    # Doing something, and saying what became of it.

    async def confirm(self, confirmation: Confirmation, key: str) -> bool:
        """Ask; must be called inside a worker."""
        answer: bool | None = await self.app.push_screen_wait(ConfirmDialog(confirmation, opened_by=key))
        return answer is True

    async def perform(self, act: str, do: Callable[[], Awaitable[Outcome]]) -> bool:
        """Run a verb and say its result; look again soon. A lost answer is said to be lost, nothing is repeated."""
        try:
            outcome = await do()
        except DatabaseUnavailable as error:
            outcome = Outcome(lost_words(error), is_failure=True)
        except (PgqError, psycopg.Error, OSError, TimeoutError) as error:
            outcome = Outcome(cause(error), is_failure=True)
        self.report(act, outcome)
        self.poller.hurry()
        return not outcome.is_failure

    async def read(self, reading: Awaitable[T]) -> T | None:
        """The answer of one more read; on trouble a sentence instead."""
        try:
            return await reading
        except (PgqError, psycopg.Error, OSError, TimeoutError) as error:
            self.say(cause(error), Token.FAILED)
            return None

    def report(self, act: str, outcome: Outcome) -> None:
        """Into the journal, the status line and a toast."""
        self.session.journal.write(self.session.now, act, outcome)
        words = f"{act}: {outcome.words}"
        severity: SeverityLevel = "error" if outcome.is_failure else "information"
        self.notify(words, severity=severity, markup=False, timeout=10 if outcome.is_failure else 5)
        self.say(words, Token.FAILED if outcome.is_failure else Token.OK)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault of ours in a command is told, it does not end the console."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            logger.error("a command failed", exc_info=event.worker.error, extra={"event": "command_failed"})
            words = f"failed: {type(event.worker.error).__name__}, see the log"
            self.report("this command", Outcome(words, is_failure=True))

    # Messages of the bars.

    def on_descendant_focus(self) -> None:
        self.refresh_chrome()

    def on_tab_strip_tab_clicked(self, message: TabStrip.TabClicked) -> None:
        self.post_message(GoTo(message.tab_id))

    async def on_key_hints_hint_clicked(self, message: KeyHints.HintClicked) -> None:
        await self.run_command(message.action)

    def on_prompt_closed(self) -> None:
        self.query_one(StatusLine).display = True
        self.restore_focus()

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        if message.kind == "command" and message.text:
            self.post_message(CommandTyped(message.text))
        else:
            self.prompt_submitted(message.kind, message.text)

    def prompt_submitted(self, kind: str, text: str) -> None:
        """Another kind of line was typed; for subclasses that asked for it."""

    def ask(self, kind: str, *, sign: str, value: str = "", suggestions: tuple[str, ...] = ()) -> None:
        """Open the prompt in the place of the status line."""
        self.query_one(StatusLine).display = False
        self.query_one(Prompt).open(kind, sign=sign, value=value, suggestions=suggestions)

    def fit_main(self, rows: int) -> None:
        """Give the table above a detail the lines it needs, at most three fifths of the screen."""
        table, body = self.query_one("#body .main"), self.query_one("#body")
        height = max(min(rows + FRAME_AND_HEADER, body.size.height * 3 // 5), FRAME_AND_HEADER + 2)
        if body.size.height and (table.styles.height is None or table.styles.height.value != height):
            table.styles.height = height

    def restore_focus(self) -> None:
        """Back to the main pane."""
        main = self.query("#body .main").first()
        main.focus()

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        await self.run_command("open")

    # Commands of every screen.

    def action_screen(self, screen: str) -> None:
        self.post_message(GoTo(screen))

    def action_open(self) -> None:
        """For screens without anything to open."""

    def action_back(self) -> None:
        if not self.go_back():
            self.restore_focus()

    def action_next_pane(self) -> None:
        self.focus_next()

    def action_previous_pane(self) -> None:
        self.focus_previous()

    def action_command_line(self) -> None:
        self.action_type_command("")

    def action_type_command(self, start: str) -> None:
        """Open the command line with these words in it."""
        self.ask("command", sign=":", value=start, suggestions=suggestions(self.session.overview))

    @work(group="help", exclusive=True, exit_on_error=False)
    async def action_help(self) -> None:
        rows = help_rows(self.ID, self.usable_ids())
        chosen = await self.app.push_screen_wait(HelpOverlay(rows, title=f"Help: {self.crumb()}"))
        if chosen:
            await self.run_command(chosen)

    def action_refresh_now(self) -> None:
        if self.is_frozen:
            self.action_freeze()
        self.poller.kick()

    def action_freeze(self) -> None:
        self.is_frozen = not self.is_frozen
        if self.is_frozen:
            self.poller.rest()
        else:
            self.poller.watch()
        self.refresh_chrome()

    def action_rate(self, step: int) -> None:
        interval = self.session.change_interval(step)
        self.poller.kick()
        self.say(f"looks every {interval:g} s")

    def action_copy(self) -> None:
        if words := self.copy_words():
            self.app.copy_to_clipboard(words[:LONGEST_COPY])
            self.notify(copied_words(words), markup=False, timeout=4)

    def action_toggle_header(self) -> None:
        self.toggle_class("-bare")

    def action_interrupt(self) -> None:
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.call_next(self.run_action, "app.leave")
