"""The frame of every screen: bars around a body, and one poller that looks while somebody watches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Static

from pgq_core.domain.snapshot import Overview
from pgq_tui.command_list import SCREENS
from pgq_tui.commands import key_hints
from pgq_tui.messages import OverviewArrived
from pgq_tui.screens.banner import Banner
from pgq_tui.screens.frame_views import header_view, screen_tabs, shown_age, shown_moment
from pgq_tui.screens.notice import Notice, NoticeView, error_notice
from pgq_tui.screens.poller import Poller
from pgq_tui.screens.prompt import Prompt
from pgq_tui.screens.session import Session
from pgq_tui.theme import glyphs_of, palette_of
from pgq_tui.view_model.chrome import StatusView, TabsView
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.widgets.status_bar import HeaderBar, KeyHints, StatusLine, TabStrip

MESSAGE_SECONDS = 10.0
FRAME_AND_HEADER = 3
"""Lines of a table that are no rows."""
REFUSED = "-refused"
"""Class of a screen whose prompt is open again because what was typed there means nothing: the status line says why."""
HEADER_SECONDS = 3.0
"""How old the numbers of the header may be on screens that do not show the overview themselves."""


class FramedScreen(Screen[None]):
    """Subclasses say what stands in the body, what one look reads, and how an overview changes the picture."""

    ID: ClassVar[str] = ""
    LAYOUT: ClassVar[str] = "split"
    """Class of the body: how the panes are laid out."""
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

    @abstractmethod
    def compose_body(self) -> ComposeResult:
        """The panes; the one with the class `main` has the focus."""

    @abstractmethod
    def usable_ids(self) -> Iterator[str]:
        """Ids of the commands that can be used now."""

    def labels(self) -> dict[str, str]:
        """Words for key hints that say more at this moment than those of the command."""
        return {}

    async def look(self) -> None:
        """One read; answers go through messages, so that they are shown in the order they came."""
        self.post_message(OverviewArrived(await self.session.backend.overview(self.session.window)))

    def show_overview(self, overview: Overview) -> None:
        """Change the picture."""

    def look_failed(self) -> None:
        """Nothing new is known; for subclasses that show something that may not hold any more."""

    def remark(self) -> str:
        """What stands at the right of the status line."""
        return ""

    def crumb(self) -> str:
        """Where in the screen we are."""
        return next(screen.title for screen in SCREENS if screen.id == self.ID)

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
        if self.session.overview_age > HEADER_SECONDS:
            overview = await self.session.backend.overview(self.session.window)
            self.post_message(OverviewArrived(overview))

    def _look_worked(self, seconds: float) -> None:
        self.session.link.succeeded(self.session.monotonic(), seconds)
        self.refresh_chrome()

    def _look_failed(self, error: Exception, is_outage: bool, retry_in: float) -> None:
        self.session.link.failed(self.session.monotonic(), error, retry_in, is_outage=is_outage)
        self.look_failed()
        self.refresh_chrome()

    def _tick(self) -> None:
        if self in self.app.screen_stack:
            self.refresh_chrome()

    def on_descendant_focus(self) -> None:
        self.refresh_chrome()

    def refresh_chrome(self) -> None:
        """Bring all bars up to date; each paints only what changed."""
        if not self.is_mounted:
            return
        session = self.session
        at = session.monotonic()
        notice = self._notice()
        self.query_one(HeaderBar).show(header_view(session, self.glyphs))
        self.query_one(TabStrip).show(TabsView(screen_tabs(session), self.ID, self.crumb()))
        self.query_one(StatusLine).show(self._status(at))
        self.query_one(Notice).say(notice)
        self.query_one(Banner).say("" if notice else session.link.banner(at))
        self.query_one(KeyHints).show(tuple(key_hints(self.ID, self.usable_ids(), self.labels())))
        self.set_class(notice is not None, "-notice")
        self.set_class(session.link.error is not None, "-dim")
        if self._shown_can_write != session.can_write:
            self._shown_can_write = session.can_write
            self.refresh_bindings()

    def say(self, words: str, token: Token = Token.TEXT) -> None:
        """A sentence in the status line, for a while."""
        self._message = (words, token, self.session.monotonic() + MESSAGE_SECONDS)
        self.refresh_chrome()

    def fit_main(self, rows: int) -> None:
        """Give the table above a detail the lines it needs, at most three fifths of the screen."""
        table, body = self.query_one("#body .main"), self.query_one("#body")
        if self.has_class("-short") or self.has_class("-slim"):
            table.styles.clear_rule("height")  # there is no detail below
            return
        height = max(min(rows + FRAME_AND_HEADER, body.size.height * 3 // 5), FRAME_AND_HEADER + 2)
        if body.size.height and (table.styles.height is None or table.styles.height.value != height):
            table.styles.height = height

    def _status(self, at: float) -> StatusView:
        session = self.session
        link = session.link.state(at, session.interval, is_frozen=self.is_frozen)
        message, token, until = self._message
        return StatusView(
            link,
            age_seconds=shown_age(session, link, at),
            detail=shown_moment(session, link),
            message=message if at < until or self.has_class(REFUSED) else "",
            message_token=token,
            right=self.remark(),
        )

    def _notice(self) -> NoticeView | None:
        error = self.session.link.error
        return error_notice(error) if error is not None and not self._has_picture else None
