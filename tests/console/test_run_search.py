"""Looking for words in the tail of runs: one number of lines, of those that are there to be seen; cut lines say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from pgq_tui.pictures import NOW, Shop, busy_shop
from pgq_tui.widgets.tail_view import TailView
from tests.console.stage import FakeBackend, burst, console, screen_lines, screen_text, settle, shows

SIZES = [(80, 24), (160, 45)]
LONG = "a very long error " * 20


def more_runs(shop: Shop, count: int) -> None:
    last = max(shop.runs, key=lambda run: run.id)
    shop.runs += [
        replace(last, id=last.id + number, error=LONG, finished_at=NOW + timedelta(seconds=number))
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("size", SIZES)
async def test_a_held_tail_says_one_number_of_lines_that_were_found(size: tuple[int, int]) -> None:
    shop = busy_shop()
    app = console(FakeBackend(shop), interval=0.2)

    async with app.run_test(size=size) as pilot:
        await pilot.press("4")
        await shows(pilot, "400 lines")
        await pilot.press("space")
        await shows(pilot, "paused")
        burst(pilot, "&very long", "enter")
        await shows(pilot, "no line here holds these words", "(0 hits)")
        more_runs(shop, 7)
        await shows(pilot, "+7 new")
        assert "(0 hits)" in screen_text(app)
        burst(pilot, "&very long", "enter")
        await shows(pilot, "no line here holds these words", "(0 hits)", "+7 new")

        await pilot.press("G")
        await shows(pilot, "(7 hits)", "follow")
        burst(pilot, "&very long", "enter")
        await shows(pilot, "n and N go on", "(7 hits)")
        assert "found" not in screen_text(app)


async def test_lines_that_the_cursor_reached_are_looked_through() -> None:
    shop = busy_shop()
    app = console(FakeBackend(shop), interval=0.2)

    async with app.run_test(size=SIZES[1]) as pilot:
        await pilot.press("4")
        await shows(pilot, "400 lines")
        burst(pilot, "&very long", "enter", "space")
        tail = app.console_screen.query_one(TailView)
        await settle(pilot, until=lambda: not tail.follow)
        more_runs(shop, 7)
        await shows(pilot, "+7 new")
        await pilot.press("down", "down", "down", "down")

        await shows(pilot, "(4 hits)", "+3 new")


@pytest.mark.parametrize("size", SIZES)
async def test_a_line_that_goes_on_to_the_right_says_so(size: tuple[int, int]) -> None:
    shop = busy_shop()
    more_runs(shop, 3)

    async with console(FakeBackend(shop)).run_test(size=size) as pilot:
        await pilot.press("4")
        await shows(pilot, "403 lines", "a very long")

        cut = [line.rstrip("│▁▂▃▄▅▆▇█ ") for line in screen_lines(pilot.app) if "a very" in line]
        assert [line[-1] for line in cut] == ["…"] * 3
        whole = [
            line for line in screen_lines(pilot.app) if "make_invoice" in line and "#1" in line and "a very" not in line
        ]
        assert whole
        assert not any("…" in line for line in whole)
