"""Keys that come faster than the console opens what they are for: a prompt, a dialog, a screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from pgq_tui.app import PgqApp
from pgq_tui.screens.prompt import Prompt, PromptInput
from pgq_tui.widgets import dialog
from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.confirm_dialog import ConfirmDialog
from pgq_tui.widgets.input_dialog import InputDialog
from pgq_tui.widgets.text_dialog import TextDialog
from tests.console.stage import FakeBackend, burst, console, settle, shows
from tests.console.terminal import Terminal

SIZE = (120, 36)
WRITES = {"cancel", "discard", "drain", "pause", "replay", "resume", "scale", "scale_by", "set_audit", "undo"}


def prompt_text(pilot: Pilot[Any]) -> str:
    return pilot.app.console_screen.query_one(PromptInput).value


def wrote(backend: FakeBackend) -> list[str]:
    return [verb for verb, _ in backend.calls if verb in WRITES]


async def at(pilot: Pilot[Any], number: int) -> PgqApp:
    await pilot.press(str(number))
    await shows(pilot, f"[{number} ", "✓ live")
    return pilot.app


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
async def test_all_that_follows_the_colon_is_text(number: int) -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        app = await at(pilot, number)
        mode = app.current_mode
        burst(pilot, ":+-pARDXz 123 q>I")

        await settle(pilot, until=lambda: prompt_text(pilot).endswith("I"))
        assert prompt_text(pilot) == "+-pARDXz 123 q>I"
        assert app.current_mode == mode
        assert app.screen is app.console_screen
        assert wrote(backend) == []


async def test_editing_and_sending_off_keep_their_place_in_what_is_typed() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await at(pilot, 6)
        burst(pilot, ":quues", "backspace", "backspace", "left", "delete", "enter")

        await shows(pilot, "'qu' may be")
        assert pilot.app.is_running


async def test_a_command_typed_in_one_go_is_done_and_what_follows_is_for_the_screen() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        app = await at(pilot, 1)
        burst(pilot, ":dead", "enter")
        burst(pilot, "/hello world", "enter")

        await shows(pilot, "nothing matches hello world")
        assert app.current_mode == "dead"


async def test_escape_in_a_burst_closes_the_prompt_and_nothing_else() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        app = await at(pilot, 5)
        burst(pilot, "/replay", "escape", "2")

        await settle(pilot, until=lambda: app.current_mode == "queues")
        assert not app.screen_stack[0].query_one(Prompt).is_open


async def test_a_paste_right_behind_the_colon_is_pasted_there() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await at(pilot, 5)
        burst(pilot, "/x")
        pilot.app.post_message(events.Paste("queue:mail"))
        burst(pilot, " y")

        await settle(pilot, until=lambda: prompt_text(pilot) == "xqueue:mail y")


async def test_a_number_typed_behind_the_key_of_a_dialog_is_typed_into_it() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        app = await at(pilot, 5)
        await shows(pilot, "Dead letters 53")
        burst(pilot, "aD53y", "enter")

        await settle(pilot, until=lambda: isinstance(app.screen, ConfirmDialog))
        await settle(pilot, until=lambda: app.screen.query_one("#confirm-input", Input).value == "53y")
        assert app.current_mode == "dead"
        assert wrote(backend) == []


async def test_the_answer_behind_the_key_of_a_dialog_comes_too_fast_to_be_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long the dialog takes to come: it was not there to be read when the answer was typed."""
    monkeypatch.setattr(dialog, "DEAD_SECONDS", 0.0)
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        app = await at(pilot, 5)
        await shows(pilot, "Dead letters 53")
        burst(pilot, "Ry")
        await settle(pilot, until=lambda: isinstance(app.screen, ConfirmDialog))
        await settle(pilot, until=lambda: app.typed_at is None)

        assert isinstance(app.screen, ConfirmDialog)
        assert wrote(backend) == []
        await pilot.press("y")
        await settle(pilot, until=lambda: backend.called("replay"))


async def test_the_reason_behind_the_key_that_pauses_is_the_reason() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        app = await at(pilot, 2)
        burst(pilot, "pquit 5 DD")

        await settle(pilot, until=lambda: isinstance(app.screen, InputDialog))
        await settle(pilot, until=lambda: app.screen.query_one(Input).value == "quit 5 DD")
        assert wrote(backend) == []


async def test_a_key_behind_the_one_that_changes_the_screen_is_for_the_new_screen() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at(pilot, 2)
        burst(pilot, "5p")

        await shows(pilot, "Dead letters 53")
        await pilot.press("2")
        await settle(pilot, until=lambda: pilot.app.current_mode == "queues")
        assert not isinstance(pilot.app.screen, InputDialog), "p pauses on 2, and means nothing on 5"


async def test_a_key_behind_the_one_that_opens_a_text_closes_the_text() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        app = await at(pilot, 4)
        opened: list[object] = []
        app.screen_change_signal.subscribe(app, opened.append)
        burst(pilot, "", "enter")
        burst(pilot, "q")

        await settle(pilot, until=lambda: bool(opened) and app.screen is app.console_screen)
        assert isinstance(opened[0], TextDialog)
        assert not any(isinstance(one, ChoiceDialog) for one in opened)


async def test_a_server_that_says_nothing_does_not_take_the_keyboard_away() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        app = await at(pilot, 4)
        backend.is_silent = True
        burst(pilot, "", "enter")
        burst(pilot, "2")

        await settle(pilot, until=lambda: app.current_mode == "queues")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.system
def test_a_line_written_to_a_real_terminal_at_once_is_one_command(terminal: Terminal, dsn: str) -> None:
    terminal.run_console("--dsn", dsn)
    terminal.wait_for("[1 Dash]", "live")

    terminal.type(":quues +p 5\r")
    terminal.wait_for("there is no command 'quues'", "[1 Dash]")

    terminal.type(":jobs\r/is:+p 5\x7f\x7fx\r")
    terminal.wait_for("[3 Jobs]", "is:+px")
