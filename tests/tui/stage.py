"""A small app that shows one widget, and text nobody would like to see in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from pgq_tui.theme import ansi_colour, install_themes
from pgq_tui.view_model import UNICODE, Glyphs

SIZES = [(80, 24), (160, 45)]
PATIENCE = 60.0

HOSTILE = [
    "[/]",
    "[red]x",
    "[link=http://x]y[/link]",
    "[@click=app.quit]z[/]",
    "\\\\[",
    "[[",
    ":smile: {x} %s",
    '["a",1] [info] [worker-1]',
    "\x1b[2J\x1b[?1049l\x1b[1;5r",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x9b31m csi",
    "nul\x00nul",
    "\x07" * 1_000,
    "back\x08\x08\x08space",
    "carriage\rreturn",
    "abc\u202efdp.exe\u2066x\u2069",
    "zero\u200b\u200d\ufeffwidth",
    "e" + "\u0301" * 10_000,
    "\u0301starts with a mark",
    "👩‍👩‍👧‍👦 👍🏽 ❤️ 🇩🇪 漢字",
    "\ud800 lone surrogate \udfff",
    "tab\there",
    "two\nlines\u2028three",
    "\x7f",
    "",
    "x" * 1_000_000,
]
"""Markup, escape sequences, controls, bidi, joiners, marks, surrogates, a line of a megabyte."""


class Stage(App[object]):
    """Shows a widget alone, in the themes of the console."""

    def __init__(self, *widgets: Widget, theme: str | None = None, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(ansi_color=ansi_colour(os.environ))
        self._widgets = widgets
        self._theme_name = theme
        self.glyphs = glyphs
        self.messages: list[object] = []

    def compose(self) -> ComposeResult:
        """The widgets below one another."""
        yield from self._widgets

    def on_mount(self) -> None:
        """Put on the themes."""
        install_themes(self, self._theme_name)


def screen_lines(app: App[object]) -> list[str]:
    """What stands on the screen, line by line."""
    return [strip.text for strip in app.screen._compositor.render_strips(app.size)]


def screen_text(app: App[object]) -> str:
    """What stands on the screen."""
    return "\n".join(screen_lines(app))


async def settle(pilot: Pilot[object], *, until: Callable[[], bool] = lambda: True) -> None:
    """Let all messages be handled; go on until the condition holds, on a busy machine as well."""
    deadline = time.monotonic() + PATIENCE
    rest = 0.03
    while True:
        await pilot.pause()
        if until():
            return
        if time.monotonic() > deadline:
            raise AssertionError("the app did not come to rest in the wanted state")
        await pilot.pause(rest)
        rest = min(2 * rest, 0.2)  # a look may draw the whole screen
