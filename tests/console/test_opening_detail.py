"""Enter on a list: first to the detail beside it, then to the whole of it; the keys say which."""

from __future__ import annotations

import pytest

from pgq_tui.commands import help_rows
from pgq_tui.widgets.detail_pane import DetailPane
from pgq_tui.widgets.row_table import RowTable
from pgq_tui.widgets.text_dialog import TextDialog
from pgq_tui.widgets.text_view import TextView
from tests.console.stage import FakeBackend, console, screen_lines, settle, shows

SIZES = [(80, 24), (160, 45)]
LISTS = [("3", "job 88"), ("5", "dead letter 1093"), ("6", "pool images")]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("screen", "title"), LISTS)
async def test_enter_goes_to_the_detail_and_again_to_the_whole_of_it(
    size: tuple[int, int], screen: str, title: str
) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=size) as pilot:
        await pilot.press(screen)
        await shows(pilot, title)
        pane = app.console_screen.query_one(DetailPane)
        await settle(pilot, until=lambda: pane.detail is not None)
        assert "enter detail" in screen_lines(app)[-1]
        await pilot.press("enter")
        await settle(pilot, until=lambda: pane.has_focus and "enter whole text" in screen_lines(app)[-1])
        whole = pane.copy_text.splitlines()
        await pilot.press("enter")
        await settle(pilot, until=lambda: isinstance(app.screen, TextDialog))

        await settle(pilot, until=lambda: app.screen.query_one(TextView).line_count >= len(whole))
        await pilot.press("escape")
        await settle(pilot, until=lambda: app.screen is app.console_screen and pane.has_focus)
        await pilot.press("escape")
        await settle(pilot, until=lambda: app.console_screen.query_one(RowTable).has_focus)


async def test_enter_on_a_kind_of_failure_lists_its_letters_and_on_its_detail_shows_the_whole() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.press("5", "V")
        await shows(pilot, "Kinds of failure 4", "enter its letters")
        await settle(pilot, until=lambda: app.console_screen.query_one(DetailPane).detail is not None)
        await pilot.press("tab", "enter")
        await settle(pilot, until=lambda: isinstance(app.screen, TextDialog))
        await pilot.press("escape", "escape", "enter")

        await shows(pilot, "Dead letters 31")
        assert app.console_screen.filter_line.startswith("fp:")


@pytest.mark.parametrize(
    ("screen", "words"),
    [
        ("dash", "To what the selected row is about"),
        ("queues", "Jobs of the selected queue"),
        ("jobs", "To the detail of the selected row"),
        ("runs", "Error, traceback and result"),
        ("dead", "To the detail of the selected row"),
        ("workers", "To the detail of the selected row"),
    ],
)
def test_help_says_what_enter_does_on_each_screen(screen: str, words: str) -> None:
    assert next(row.description for row in help_rows(screen, ()) if row.keys == "enter").startswith(words)
