"""The filter line: what is refused is said where it is typed, and a second word is not glued to the first."""

from __future__ import annotations

import time

import pytest

from pgq_tui.screens.prompt import Prompt, PromptInput
from tests.console.stage import FakeBackend, burst, console, screen_lines, screen_text, settle, shows

SIZES = [(80, 24), (160, 45), (80, 12)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("number", "line", "words"),
    [(3, "state:foo", "state:foo is none of"), (5, "reason:nope", "reason:nope is none of")],
)
async def test_a_refused_filter_says_why_while_the_prompt_is_open(
    size: tuple[int, int], number: int, line: str, words: str
) -> None:
    async with console(FakeBackend()).run_test(size=size) as pilot:
        await pilot.press(str(number))
        await settle(pilot, until=lambda: f"{number} " in screen_text(pilot.app))
        burst(pilot, f"/{line}", "enter")

        await shows(pilot, words)
        prompt = pilot.app.console_screen.query_one(Prompt)
        assert prompt.is_open
        assert f"/ {line}" in screen_lines(pilot.app)[-3]
        await pilot.press("escape")
        await settle(pilot, until=lambda: not prompt.is_open)
        assert pilot.app.console_screen.query_one("#status").display == (size != (80, 12))


async def test_the_reason_stays_as_long_as_the_prompt() -> None:
    ahead = [0.0]
    app = console(FakeBackend(), monotonic=lambda: time.monotonic() + ahead[0])

    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.press("3")
        burst(pilot, "/state:foo", "enter")
        await shows(pilot, "state:foo is none of")
        ahead[0] = 60.0
        app.console_screen.refresh_chrome()
        await pilot.pause()
        assert "state:foo is none of" in screen_text(app)

        await pilot.press("escape")
        await settle(pilot, until=lambda: "state:foo is none of" not in screen_text(app))


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
async def test_what_is_typed_next_is_another_word_of_the_filter(number: int) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZES[1]) as pilot:
        await pilot.press(str(number))
        await shows(pilot, f"[{number} ")
        burst(pilot, "/queue:emails", "enter")
        burst(pilot, "/type:send_email")

        await settle(pilot, until=lambda: app.console_screen.query_one(PromptInput).value.endswith("send_email"))
        assert app.console_screen.query_one(PromptInput).value == "queue:emails type:send_email"
        await pilot.press("enter")
        await settle(pilot, until=lambda: app.console_screen.filter_line == "queue:emails type:send_email")


async def test_no_filter_opens_an_empty_prompt() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.press("5", "slash")

        await settle(pilot, until=lambda: app.console_screen.query_one(Prompt).is_open)
        assert app.console_screen.query_one(PromptInput).value == ""


async def test_runs_that_no_filter_matches_say_so_and_how_to_clear_it() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.press("4")
        await shows(pilot, "[4 Runs]")
        burst(pilot, "/queue:nowhere", "enter")

        def is_said() -> bool:
            lines = screen_lines(app)
            tail = next((number for number, line in enumerate(lines) if "╭─ Runs" in line), 0)
            return "nothing matches queue:nowhere · esc clears the filter" in lines[tail + 1]

        await settle(pilot, until=is_said)
        await pilot.press("escape")
        await settle(pilot, until=lambda: not is_said())
