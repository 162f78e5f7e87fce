"""One key after the other: the next goes on only when what the last one opened is there to take it.

Textual gives a key to whatever has the focus at the moment it arrives, and runs what the key is bound to some
messages later. Of keys that arrive in one read, those behind a `:` would so reach the table and act as commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from textual.app import App, ScreenStackError
from textual.events import Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker

Typed = Key | Paste

TYPED_AHEAD = 10_000
"""Keys that are held at most, more than a page that was pasted as keys."""
GENERATIONS = 5
"""How often a message that a key caused may cause another one before the key counts as done."""
LONGEST_HOLD = 1.0
"""So long the keys behind a command wait for its dialog; a silent server must not take the keyboard away."""
_LOOK_AGAIN = 0.01
_LOST_AFTER = 0.25
_COMMANDS = frozenset({"acts", "help", "leave", "reads", "theme"})
"""Groups of the workers in which commands run, some of which open a dialog."""


class KeyPassed(Message):
    """Follows a key from widget to widget: where it arrives, everything before it has been dealt with."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()


class KeyGate:
    """Holds what is typed until `deliver` may have it."""

    def __init__(self, app: App[int], deliver: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._deliver = deliver
        self._typed: asyncio.Queue[tuple[Typed, float]] = asyncio.Queue(maxsize=TYPED_AHEAD)
        self.typed_at: float | None = None
        """When the key was typed that is dealt with now (`time.monotonic`); None between two keys."""

    def take(self, event: Typed) -> None:
        """It will be delivered after all that was taken before; lost where nobody can have meant so many."""
        with contextlib.suppress(asyncio.QueueFull):
            self._typed.put_nowait((event, time.monotonic()))

    async def run(self) -> None:
        """Deliver until the app has no screen left; must be called inside a worker."""
        with contextlib.suppress(ScreenStackError):
            while True:
                event, self.typed_at = await self._typed.get()
                await self._let_through(event)
                self.typed_at = None

    async def _let_through(self, event: Typed) -> None:
        screen, commands = self._app.screen, self._commands()
        is_text = self._is_text(event)
        await self._deliver(event)
        if is_text:
            await self._pass_through()
        else:
            await self._settle(screen, commands)

    def _is_text(self, event: Typed) -> bool:
        """Whether a field takes it as a character of its text: nothing comes of that."""
        focused = self._app.focused
        return isinstance(event, Key) and focused is not None and focused.check_consume_key(event.key, event.character)

    async def _settle(self, screen: Screen[object], commands: frozenset[Worker[object]]) -> None:
        await self._pass_generations()
        # A command that goes on behind its dialog may open another one.
        before = frozenset[Worker[object]]() if screen.is_modal and self._app.screen is not screen else commands
        until = time.monotonic() + LONGEST_HOLD
        has_waited = False
        while time.monotonic() < until and self._is_opening(screen, before):
            has_waited = True
            await asyncio.sleep(_LOOK_AGAIN)
        if has_waited:
            await self._pass_generations()

    def _is_opening(self, screen: Screen[object], before: frozenset[Worker[object]]) -> bool:
        """Whether a dialog may come, or one has come that cannot take a key yet."""
        now = self._app.screen
        if now is not screen and now.focused is None:
            return True
        return not (now.is_modal and now is not screen) and bool(self._commands() - before)

    def _commands(self) -> frozenset[Worker[object]]:
        return frozenset(one for one in self._app.workers if one.group in _COMMANDS and not one.is_finished)

    async def _pass_generations(self) -> None:
        for _ in range(GENERATIONS):
            await self._pass_through()

    async def _pass_through(self) -> None:
        """Wait until all that is queued between the focus and the app has been dealt with."""
        while True:
            place = self._app.focused or self._app.screen
            token = KeyPassed()
            if not place.post_message(token):
                self._app.post_message(token)
            while place.is_running and place.is_attached and not token.arrived.is_set():
                await _set_within(token.arrived, _LOST_AFTER)
            if token.arrived.is_set():
                return
            # The place is gone, and the token perhaps with it.
            if await _set_within(token.arrived, _LOST_AFTER):
                return


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
