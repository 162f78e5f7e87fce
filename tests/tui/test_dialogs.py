"""Dialogs: Cancel is the default, the confirming key is dead at first, outside text is shown to the letter."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from pgq_tui.view_model import Choice, Confirmation, HelpRow, Token
from pgq_tui.widgets import ChoiceDialog, ConfirmDialog, HelpOverlay, InputDialog, TextDialog
from tests.tui.stage import SIZES, Stage, screen_text, settle

REPLAY = Confirmation(
    title="Replay 812 dead letters",
    effect="812 jobs go back to queue emails [/x] with a fresh budget.",
    verb="Replay 812",
    items=tuple(f"88 120 {number} send_email [red]boom[/]" for number in range(5)),
    total=812,
)
COUNTED = Confirmation(title="Discard 812", effect="812 dead letters go.", verb="Discard", challenge="812")


@dataclass
class Clock:
    """A clock that stands until it is told to go on."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


class Asked(Stage):
    """Keeps what a dialog ended with."""

    def __init__(self) -> None:
        super().__init__(Static("below"))
        self.answers: list[object] = []

    async def ask(self, dialog: Screen[object]) -> None:
        await self.push_screen(dialog, self.answers.append)


@pytest.mark.parametrize("size", SIZES)
async def test_the_focus_starts_on_cancel_and_enter_changes_nothing(size: tuple[int, int]) -> None:
    app, clock = Asked(), Clock()
    async with app.run_test(size=size) as pilot:
        await app.ask(ConfirmDialog(REPLAY, clock=clock))
        await settle(pilot)
        assert app.focused is not None
        assert app.focused.id == "confirm-cancel"
        clock.now += 10

        await pilot.press("enter")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [False]


async def test_the_confirming_key_is_dead_for_300_milliseconds() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(REPLAY, clock=clock))
        await settle(pilot)
        clock.now += 0.29
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == []

        clock.now += 0.02
        await pilot.press("y")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [True]


async def test_the_key_that_opened_a_dialog_never_confirms_it() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(REPLAY, opened_by="y", clock=clock))
        await settle(pilot)
        clock.now += 10
        await pilot.press("y", "y")
        await settle(pilot)
        assert app.answers == []

        await pilot.press("tab", "enter")
        await settle(pilot, until=lambda: bool(app.answers))
        assert app.answers == [True]


async def test_the_button_obeys_the_dead_time_too() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(REPLAY, clock=clock))
        await settle(pilot)
        await pilot.click("#confirm-verb")
        await settle(pilot)
        assert app.answers == []

        clock.now += 1
        verb = app.screen.query_one("#confirm-verb")
        await settle(pilot, until=lambda: not verb.has_class("-active"))
        await pilot.click("#confirm-verb")
        await settle(pilot, until=lambda: bool(app.answers))
        assert app.answers == [True]


@pytest.mark.parametrize("key", ["escape", "n"])
async def test_escape_and_n_cancel_at_once(key: str) -> None:
    app = Asked()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(REPLAY, clock=Clock()))
        await settle(pilot)
        await pilot.press(key)
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [False]


async def test_a_count_has_to_be_typed_where_one_is_asked_for() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(COUNTED, clock=clock))
        await settle(pilot)
        assert app.focused is not None
        assert app.focused.id == "confirm-cancel"
        clock.now += 10

        await pilot.press("y", "backspace", "8", "1", "enter")
        await settle(pilot)
        assert app.answers == []
        await pilot.press("2", "enter")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [True]


async def test_a_challenge_may_begin_with_the_letters_that_answer_elsewhere() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ConfirmDialog(Confirmation("Stop", "All stop.", challenge="ny-1"), clock=clock))
        await settle(pilot)
        clock.now += 1
        await pilot.press(*"ny-1", "enter")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [True]


@pytest.mark.parametrize("size", SIZES)
async def test_effect_sample_and_rest_are_shown_to_the_letter(size: tuple[int, int]) -> None:
    app = Asked()
    async with app.run_test(size=size) as pilot:
        await app.ask(ConfirmDialog(REPLAY, clock=Clock()))
        await settle(pilot)
        shown = screen_text(app)

        for part in (
            "Replay 812 dead letters",
            "emails [/x] with",
            "send_email [red]boom[/]",
            "and 807 more",
            "Cancel",
        ):
            assert part in shown


async def test_an_input_explains_what_is_wrong_and_keeps_the_text() -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        dialog = InputDialog(
            "Pause", "Why?", check=lambda text: "too short [/x]" if len(text) < 3 else None, clock=clock
        )
        await app.ask(dialog)
        await settle(pilot)
        clock.now += 1
        await pilot.press("[", "enter")
        await settle(pilot)
        assert app.answers == []
        assert "too short [/x]" in screen_text(app)

        await pilot.press("/", "]", "enter")
        await settle(pilot, until=lambda: bool(app.answers))
        assert app.answers == ["[/]"]


async def test_leaving_an_input_answers_nothing() -> None:
    app = Asked()
    async with app.run_test() as pilot:
        await app.ask(InputDialog("Pause", "Why?", value="x", clock=Clock()))
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [None]


QUIT = (
    Choice("leave", "d", "leave running", "workers go on"),
    Choice("drain", "s", "drain and stop", "jobs finish first", Token.RETRY),
)


@pytest.mark.parametrize(
    ("keys", "answer"), [(["enter"], "leave"), (["s"], "drain"), (["escape"], None), (["down", "enter"], "drain")]
)
async def test_a_choice_is_taken_by_its_key_or_by_the_cursor(keys: list[str], answer: str | None) -> None:
    app, clock = Asked(), Clock()
    async with app.run_test() as pilot:
        await app.ask(ChoiceDialog("Quit", "5 workers run here.", QUIT, opened_by="q", clock=clock))
        await settle(pilot)
        clock.now += 1
        await pilot.press(*keys)
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == [answer]


async def test_a_choice_is_dead_at_first_too() -> None:
    app = Asked()
    async with app.run_test() as pilot:
        await app.ask(ChoiceDialog("Quit", "5 workers run here.", QUIT, clock=Clock()))
        await settle(pilot)
        await pilot.press("s", "enter", "d")
        await settle(pilot)

        assert app.answers == []


HELP = (
    HelpRow("NAV", "j k", "move", "one row [/x]", "down"),
    HelpRow("ACT", "R", "replay", "marked dead letters", "replay"),
    HelpRow("ACT", "D", "discard", "marked dead letters", "discard"),
)


@pytest.mark.parametrize("size", SIZES)
async def test_help_finds_a_key_and_runs_it(size: tuple[int, int]) -> None:
    app = Asked()
    async with app.run_test(size=size) as pilot:
        await app.ask(HelpOverlay(HELP, title="Help [/x]"))
        await settle(pilot)
        assert "one row [/x]" in screen_text(app)
        await pilot.press(*"letters")
        await settle(pilot)
        assert app.screen.query_one(OptionList).option_count == 3
        await pilot.press("down", "enter")
        await settle(pilot, until=lambda: bool(app.answers))

        assert app.answers == ["discard"]


async def test_help_that_finds_nothing_says_so() -> None:
    app = Asked()
    async with app.run_test() as pilot:
        await app.ask(HelpOverlay(HELP))
        await settle(pilot)
        await pilot.press(*"[zz", "enter")
        await settle(pilot)

        assert "nothing matches" in screen_text(app)
        assert app.answers == []


async def test_a_text_is_wrapped_scrolled_and_copied() -> None:
    app = Asked()
    text = "\n".join(f"line {number} [/x]" for number in range(100)) + "\n" + "word " * 60
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(TextDialog("w-02 output", text))
        await settle(pilot)
        assert "line 0 [/x]" in screen_text(app)

        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard == text

        await pilot.press("G")
        await settle(pilot, until=lambda: "word word" in screen_text(app))
        await pilot.press("q")
        await settle(pilot, until=lambda: bool(app.answers))


async def test_keys_typed_into_a_field_reach_no_binding() -> None:
    app = Asked()
    async with app.run_test() as pilot:
        await app.ask(InputDialog("Filter", "Text", clock=Clock()))
        await settle(pilot)
        await pilot.press(*"qyn")

        assert app.screen.query_one(Input).value == "qyn"
        assert app.answers == []
