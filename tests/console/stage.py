"""The console on a backend that can be told to fail, to fall silent, or to be somebody else's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from pgq_core.errors import DatabaseUnavailable, MissingRights, SchemaMissing
from pgq_tui.app import PgqApp
from pgq_tui.pictures import Shop, ShopBackend
from pgq_tui.screens.session import Session
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from tests.tui.stage import screen_lines, screen_text, settle

__all__ = ["SIZES", "FakeBackend", "burst", "console", "screen_lines", "screen_text", "settle", "shows"]

SIZES = [(80, 24), pytest.param((120, 36), marks=pytest.mark.slow), (160, 45)]
LOST = DatabaseUnavailable("connection refused")
NO_SCHEMA = SchemaMissing("pgq_core")
NO_RIGHTS = MissingRights('role "viewer" may not read jobs', "grant it: GRANT SELECT ON jobs TO viewer")


class FakeBackend:
    """A shop; while `fault` is set every call raises it, while `is_silent` none is answered. Calls are written down."""

    def __init__(self, shop: Shop | None = None, *, read_only: bool = False) -> None:
        self.inner = ShopBackend(shop, is_read_only=read_only)
        self.fault: Exception | None = None
        self.is_silent = False
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    @property
    def shop(self) -> Shop:
        return self.inner.shop

    def called(self, verb: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of a verb."""
        return [arguments for name, arguments in self.calls if name == verb]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(value) or name == "close":
            return value

        async def call(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            if self.is_silent:
                await asyncio.sleep(3600)
            if self.fault is not None:
                raise self.fault
            return await value(*arguments)

        return call


def console(backend: FakeBackend, *, glyphs: Glyphs = UNICODE, interval: float = 1.0, **session: Any) -> PgqApp:
    """The app as the command line would make it, with a short interval."""
    return PgqApp(Session(backend, interval=interval, **session), theme="pgq-dark", glyphs=glyphs)


async def shows(pilot: Pilot[Any], *words: str) -> None:
    """Wait until all these words stand on the screen."""

    def is_there() -> bool:
        text = screen_text(pilot.app)
        return all(word in text for word in words)

    try:
        await settle(pilot, until=is_there)
    except AssertionError:
        missing = [word for word in words if word not in screen_text(pilot.app)]
        raise AssertionError(f"{missing} did not appear:\n{screen_text(pilot.app)}") from None


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    await settle(pilot, until=condition)


def burst(pilot: Pilot[Any], text: str, *keys: str) -> None:
    """All that the operator typed before the console could look: the letters of a text, then keys by name."""
    for letter in text:
        pilot.app.post_message(events.Key(_character_to_key(letter), letter))
    for key in keys:
        pilot.app.post_message(events.Key(key, None))
