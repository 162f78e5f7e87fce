"""The console itself: which screen is shown, what works on all of them, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC
from functools import partial
from pathlib import PurePath
from typing import ClassVar, cast

from rich.text import Text
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.events import Event, Key, Paste
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.worker import WorkerFailed

from pgq_core.errors import DatabaseUnavailable, PgqError
from pgq_tui.command_line import CommandLineError, parse_command
from pgq_tui.crash import write_crash_log
from pgq_tui.key_gate import KeyGate, KeyPassed, Typed
from pgq_tui.messages import CommandTyped, GoTo
from pgq_tui.palette_commands import ConsoleCommands
from pgq_tui.screens.clipboard import copied_words
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.dash import DashScreen
from pgq_tui.screens.dead import DeadScreen
from pgq_tui.screens.jobs import JobsScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.leaving import LocalWorkers, leaving_choices, leaving_words
from pgq_tui.screens.queues import QueuesScreen
from pgq_tui.screens.runs import RunsScreen
from pgq_tui.screens.session import Session
from pgq_tui.screens.workers import WorkersScreen
from pgq_tui.theme import THEMES, ansi_colour, install_themes, token_variables
from pgq_tui.typed_commands import typed_with_arguments
from pgq_tui.view_model.chrome import Choice
from pgq_tui.view_model.glyphs import Glyphs, pick_glyphs
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.results import bulk_words
from pgq_tui.view_model.safe_text import safe_lines
from pgq_tui.view_model.times import format_stamp
from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.scrollbars import suit_scrollbars
from pgq_tui.widgets.text_dialog import LONGEST_COPY, TextDialog
from pgq_tui.worker_keeper import successors

SCREEN_TYPES: dict[str, type[ConsoleScreen]] = {
    screen.ID: screen for screen in (DashScreen, QueuesScreen, JobsScreen, RunsScreen, DeadScreen, WorkersScreen)
}
WAY_OUT = "ctrl+q"
"""The key that waits for nothing."""
LONGEST_WAIT_TO_LEAVE = 1.5
BRING_UP_AGAIN = 3.0
STYLESHEETS: list[str | PurePath] = [f"tcss/{name}.tcss" for name in ("console", "dash", "queues", "runs", "dead")]


class PgqApp(App[int]):
    """Ends with an exit code."""

    TITLE = "pgq"
    CSS_PATH = STYLESHEETS
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ConsoleCommands}
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(WAY_OUT, "leave", "Quit", id="app.quit", show=False, priority=True),
    ]
    DEFAULT_MODE = "dash"

    def __init__(
        self,
        session: Session,
        *,
        bring_up: Callable[[], Awaitable[LocalWorkers | None]] | None = None,
        theme: str | None = None,
        glyphs: Glyphs | None = None,
    ) -> None:
        super().__init__(ansi_color=ansi_colour(os.environ))
        self.session = session
        self.glyphs = glyphs or pick_glyphs()
        suit_scrollbars(self.glyphs)
        self._bring_up = bring_up
        self._local_workers: LocalWorkers | None = None
        self._is_brought_up = asyncio.Event()
        self._theme_choice = theme
        self._last_screen = self.DEFAULT_MODE
        self._is_leaving = False
        self._keys = KeyGate(self, self._deliver)
        for name, screen in SCREEN_TYPES.items():
            self.add_mode(name, partial(screen, session))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_variables(self.current_theme)

    def on_load(self) -> None:
        install_themes(self, self._theme_choice)

    def on_mount(self) -> None:
        self._hand_on_keys()
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                loop.add_signal_handler(number, self._leave_by_signal, number)

        if self._bring_up is not None:
            self.call_after_refresh(self._bring_up_workers, self._bring_up)

    @work(group="workers", exit_on_error=False)
    async def _bring_up_workers(self, bring_up: Callable[[], Awaitable[LocalWorkers | None]]) -> None:
        """After the window is there: a supervisor takes a moment to come up."""
        try:
            self._local_workers = await self._brought_up(bring_up)
        except (PgqError, OSError) as error:
            self._report_workers(str(error), is_failure=True)
        finally:
            self._is_brought_up.set()
        if self._local_workers is not None:
            await self._keep_workers(self._local_workers, bring_up)

    async def _brought_up(self, bring_up: Callable[[], Awaitable[LocalWorkers | None]]) -> LocalWorkers | None:
        """A database that is away is waited for, as the screens do; its red line says all there is to say."""
        while True:
            try:
                return await bring_up()
            except DatabaseUnavailable:
                self._is_brought_up.set()
                await asyncio.sleep(BRING_UP_AGAIN)

    async def _keep_workers(
        self, workers: LocalWorkers, bring_up: Callable[[], Awaitable[LocalWorkers | None]]
    ) -> None:
        def on_death(supervisor_id: str) -> None:
            self.session.dead_supervisors.add(supervisor_id)
            self._report_workers("their supervisor died; another one is brought up", is_failure=True)

        def on_failure(error: Exception) -> None:
            self._report_workers(str(error), is_failure=True)

        async for successor in successors(workers, bring_up, on_death=on_death, on_failure=on_failure):
            self._local_workers = successor
            self._report_workers("they have a supervisor again")

    def _report_workers(self, words: str, *, is_failure: bool = False) -> None:
        self.console_screen.report("workers of this host", Outcome(words, is_failure=is_failure))

    def _leave_by_signal(self, number: signal.Signals) -> None:
        """Textual would die with the terminal in raw mode; leaving in order gives it back."""
        self.call_later(self._end, 128 + number)

    async def _end(self, code: int) -> None:
        """The connections first: a statement that a silent server never answers would hold the end up."""
        await self.session.backend.close()
        self.exit(return_code=code)

    async def on_unmount(self) -> None:
        await self.session.backend.close()

    # What is typed.

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded and not _is_way_out(event):
            self._keys.take(event)
        else:
            await super().on_event(event)

    @work(group="keys")
    async def _hand_on_keys(self) -> None:
        await self._keys.run()

    async def _deliver(self, event: Typed) -> None:
        await super().on_event(event)

    @property
    def typed_at(self) -> float | None:
        """When the key was typed that is dealt with now; None where it is none."""
        return self._keys.typed_at

    def on_key_passed(self, message: KeyPassed) -> None:
        message.arrived.set()

    @property
    def console_screen(self) -> ConsoleScreen:
        """The screen below any dialog."""
        return cast(ConsoleScreen, self.screen_stack[0])

    # Going from screen to screen.

    async def on_go_to(self, message: GoTo) -> None:
        await self._show(message.screen)
        if message.target:
            self.console_screen.show_row(message.target)
        if message.filter_line is not None:
            self.console_screen.show_filtered(message.filter_line)

    async def _show(self, name: str) -> None:
        if name != self.current_mode:
            self._last_screen = self.current_mode
            await self.switch_mode(name)

    async def action_last_screen(self) -> None:
        await self._show(self._last_screen)

    # The command line.

    @work(group="acts", exit_on_error=False)
    async def on_command_typed(self, message: CommandTyped) -> None:
        screen = self.console_screen
        try:
            typed = parse_command(message.line)
            if not await typed_with_arguments(screen, typed):
                await screen.run_command(typed.command.action)
        except CommandLineError as error:
            screen.say(str(error), Token.FAILED)

    # What works everywhere.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "undo" and not self.session.can_write:
            return False if self.session.is_read_only else None
        return super().check_action(action, parameters)

    @work(group="acts", exit_on_error=False)
    async def action_undo(self) -> None:
        screen, journal = self.console_screen, self.session.journal
        last = journal.last_undoable
        if last is None:
            screen.say("nothing was done in this session that could be taken back")
            return

        async def undo() -> Outcome:
            result = await self.session.backend.undo(last.operation_id)
            words = bulk_words(result, "took back") if result.items else "taken back"
            return Outcome(words, is_failure=bool(result.items) and not result.done)

        await screen.perform(f"undo {last.act}", undo)
        if self.session.link.is_healthy:
            journal.forget_undoable(last)

    def action_journal(self) -> None:
        zone = self.session.zone
        lines = [
            f"{format_stamp(entry.at, zone)}  {'! ' if entry.is_failure else ''}{entry.act}: {entry.result}"
            for entry in self.session.journal.entries
        ]
        self.push_screen(TextDialog("Done in this session", "\n".join(lines) or "nothing yet"))

    def action_zone(self) -> None:
        self.session.zone = None if self.session.zone is not None else UTC
        self.console_screen.say("times of day in UTC" if self.session.zone else "times of day are local")
        self.console_screen.poller.kick()

    async def action_address(self) -> None:
        address = self.session.backend.url
        self.copy_to_clipboard(address)
        self.notify(copied_words(address), title="address of the database", markup=False)

    @work(group="theme", exclusive=True, exit_on_error=False)
    async def action_theme(self) -> None:
        choices = [Choice(theme.name, str(number), theme.name) for number, theme in enumerate(THEMES, 1)]
        chosen = await self.push_screen_wait(ChoiceDialog("Theme", "Which colours?", choices))
        if chosen:
            self.theme = chosen

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:  # noqa: ARG002 - Textual's
        """All commands are ours."""
        return ()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A toast may hold words of a job: no control character of theirs may reach the terminal, and no markup."""
        shown = "\n".join(safe_lines(message, glyphs=self.glyphs))
        super().notify(shown, title=title, severity=severity, timeout=timeout, markup=markup)

    def copy_to_clipboard(self, text: str) -> None:
        """Only what a terminal can take; control characters stay out of the sequence by its encoding."""
        super().copy_to_clipboard(text[:LONGEST_COPY])

    # The end.

    @work(group="leave", exit_on_error=False)
    async def action_leave(self) -> None:
        if self._is_leaving:
            await self._end(0)
            return
        self._is_leaving = True
        workers = await self._workers_brought_up()
        view = self.session.overview
        if workers is None or not workers.are_in_charge(view):
            await self._end(0)
            return
        choice = await self.push_screen_wait(
            ChoiceDialog("Leave", leaving_words(workers.count(view)), leaving_choices(), opened_by="q")
        )
        match choice:
            case "leave":
                await self._end(0)
            case "drain":
                self.console_screen.say("workers finish what they run; q again leaves at once", Token.RETRY)
                await workers.stop()
                await self._end(0)
            case _:
                self._is_leaving = False

    async def _workers_brought_up(self) -> LocalWorkers | None:
        """Those of a supervisor that is just being started count too, but nobody waits long for it to leave."""
        if self._bring_up is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_brought_up.wait(), LONGEST_WAIT_TO_LEAVE)
        return self._local_workers

    async def action_quit(self) -> None:
        self.action_leave()

    def action_help_quit(self) -> None:
        """The key of Textual's own hint does what it says."""
        self.action_leave()

    def _fatal_error(self) -> None:
        """Textual prints the values of all locals: payloads and addresses. Ours go to a file, redacted."""
        error = self._exception or sys.exc_info()[1] or RuntimeError("unknown")
        if isinstance(error, WorkerFailed):
            error = error.error
        line, _ = write_crash_log(error)
        self.bell()
        self._exit_renderables.append(Text(line))
        self._close_messages_no_wait()


def _is_way_out(event: Typed) -> bool:
    return isinstance(event, Key) and event.key == WAY_OUT
