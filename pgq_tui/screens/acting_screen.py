"""Doing something: which commands can be used, the question before, the sentence after."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import psycopg
from textual.notifications import SeverityLevel
from textual.worker import Worker, WorkerState

from pgq_core.errors import DatabaseUnavailable, PgqError
from pgq_tui.command_list import Command
from pgq_tui.commands import commands_on
from pgq_tui.screens.framed_screen import FramedScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.link import cause, lost_words
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.palette import Token
from pgq_tui.widgets.confirm_dialog import ConfirmDialog

logger = logging.getLogger(__name__)
T = TypeVar("T")

_SHORT_TOAST, _LONG_TOAST = 5, 10


class ActingScreen(FramedScreen):
    """A frame in which commands do things."""

    def is_usable(self, command: Command) -> bool:
        """Whether a command makes sense at this moment; subclasses look at what is selected."""
        return not command.is_mutating or self.session.can_write

    def usable_ids(self) -> Iterator[str]:
        return (one.id for one in commands_on(self.ID) if self.is_usable(one))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """A read-only console has no mutating keys; while the database is away they do nothing."""
        if self.session.can_write:
            return True
        mutating = (one for one in commands_on(self.ID) if one.is_mutating)
        if any(action_name(one.action) == action for one in mutating):
            return False if self.session.looks_only else None
        return True

    async def run_command(self, action: str) -> None:
        """Do what a key would do: for hints, help, palette and the command line."""
        if self.check_action(action_name(action), ()) is not True:
            self.say(self.why_not(), Token.RETRY)
            return
        await self.run_action(action)

    def why_not(self) -> str:
        """Why nothing can be changed now."""
        if self.session.looks_only:
            return "this console is read-only: start it without --read-only to change anything"
        return "nothing can be changed while the database is away"

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
        self.notify(words, severity=severity, markup=False, timeout=_LONG_TOAST if outcome.is_failure else _SHORT_TOAST)
        self.say(words, Token.FAILED if outcome.is_failure else Token.OK)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault of ours in a command is told, it does not end the console."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            logger.error("a command failed", exc_info=event.worker.error, extra={"event": "command_failed"})
            words = f"failed: {type(event.worker.error).__name__}, see the log"
            self.report("this command", Outcome(words, is_failure=True))


def action_name(action: str) -> str:
    """The name of an action without its parameters and its place.

    >>> action_name("app.undo"), action_name("scale(-1)")
    ('undo', 'scale')
    """
    return action.partition("(")[0].removeprefix("app.")
