"""Terminals of any size, changed as fast as anybody can drag a corner."""

from __future__ import annotations

import random

import pytest

from pgq_tui.command_list import SCREENS
from tests.console.stage import FakeBackend, console, screen_lines, screen_text, settle, shows

TINY = [(1, 1), (3, 2), (8, 4), (20, 5), (39, 9)]


IN_SHORT = {"dash", "dead"}
"""The chart, and the list with a detail; the other screens are made of the same parts."""
EACH_SCREEN = [
    pytest.param(screen, id=screen.id, marks=() if screen.id in IN_SHORT else pytest.mark.slow) for screen in SCREENS
]


@pytest.mark.slow
@pytest.mark.parametrize("screen", EACH_SCREEN)
async def test_a_storm_of_sizes_ends_in_the_right_picture(screen: object) -> None:
    sizes = random.Random(7)
    app = console(FakeBackend(), interval=5.0)

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(str(screen.number))  # type: ignore[attr-defined]
        await shows(pilot, "✓ live")
        before = screen_lines(app)
        storm = [*TINY, (300, 100), *((sizes.randint(1, 200), sizes.randint(1, 60)) for _ in range(8))]
        for width, height in storm:
            await pilot.resize_terminal(width, height)
        await pilot.resize_terminal(80, 24)

        await settle(pilot, until=lambda: screen_lines(app)[:2] == before[:2])
        assert len(screen_lines(app)) == 24


@pytest.mark.parametrize(
    "keys",
    [
        ("5", "R"),
        ("ctrl+p",),
        *(
            pytest.param(keys, marks=pytest.mark.slow)
            for keys in (("2", "p"), ("question_mark",), ("5", "slash"), ("6", "l"))
        ),
    ],
)
async def test_dialogs_survive_any_size(keys: tuple[str, ...]) -> None:
    app = console(FakeBackend(), interval=5.0)

    async with app.run_test(size=(80, 24)) as pilot:
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.1)
        for width, height in [*TINY, (300, 100), (80, 24)]:
            await pilot.resize_terminal(width, height)
            await pilot.pause()

        assert app.is_running


@pytest.mark.parametrize("size", [(39, 24), (100, 9), (1, 1)])
async def test_a_terminal_that_is_too_small_says_so(size: tuple[int, int]) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=size) as pilot:
        await settle(pilot)

        assert "enlarge to 40x10"[: size[0]] in screen_text(app)


@pytest.mark.parametrize("size", [(40, 10), (60, 19), (79, 24)])
async def test_a_small_terminal_keeps_rows_and_keys(size: tuple[int, int]) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=size) as pilot:
        await pilot.press("2")

        await shows(pilot, "emails", "? help")
