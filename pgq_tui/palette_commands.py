"""The fuzzy palette: every command of the screen, and every queue and pool by its name."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from pgq_tui.commands import commands_on
from pgq_tui.messages import GoTo
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.view_model.fleet import pool_key
from pgq_tui.view_model.safe_text import one_line

_LONGEST_NAME = 60

Entry = tuple[str, str, IgnoreReturnCallbackType]


class ConsoleCommands(Provider):
    """Searches the commands that can be used now."""

    async def discover(self) -> Hits:
        """Everything, before anything is typed."""
        for name, description, run in self._entries():
            yield DiscoveryHit(plain(name), run, text=name, help=description)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, description, run in self._entries():
            score = max(matcher.match(name), matcher.match(description) * 0.8)
            if score > 0:
                yield Hit(score, plain(name), run, text=name, help=description)

    def _entries(self) -> Iterator[Entry]:
        screen = self.screen
        if not isinstance(screen, ConsoleScreen):
            return
        usable = set(screen.usable_ids())
        for one in commands_on(screen.ID):
            if one.id in usable and one.id != "palette":
                keys = f"  {one.shown}" if one.shown else f"  :{one.words[0]}" if one.words else ""
                yield f"{one.title}{keys}", one.describe(screen.ID), self._runner(screen, one.action)
        yield from self._places(screen)

    def _places(self, screen: ConsoleScreen) -> Iterator[Entry]:
        overview = screen.session.overview
        for queue in overview.queues if overview else ():
            yield (
                f"queue {one_line(queue.name, _LONGEST_NAME)}",
                "go to this queue",
                self._goer(screen, "queues", queue.name),
            )
        for pool in overview.pools if overview else ():
            yield (
                f"pool {one_line(pool.name, _LONGEST_NAME)}",
                "go to this pool",
                self._goer(screen, "workers", pool_key(pool)),
            )

    def _runner(self, screen: ConsoleScreen, action: str) -> IgnoreReturnCallbackType:
        async def run() -> None:
            await screen.run_command(action)

        return run

    def _goer(self, screen: ConsoleScreen, name: str, target: str) -> IgnoreReturnCallbackType:
        def go() -> None:
            screen.post_message(GoTo(name, target))

        return go


def plain(words: str) -> Content:
    """Names come from the database: never markup."""
    return Content.from_rich_text(Text(words))
