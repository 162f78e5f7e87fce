"""One list of commands behind all doors: keys, hints, help, palette, command line."""

from __future__ import annotations

import contextlib

import pytest
from textual import events
from textual.binding import Binding
from textual.command import CommandInput
from textual.widgets import OptionList

from pgq_tui.app import SCREEN_TYPES, PgqApp
from pgq_tui.command_line import CommandLineError, parse_command
from pgq_tui.command_list import COMMANDS, GROUPS, SCREENS
from pgq_tui.commands import bindings, commands_on, find_by_word, help_rows, key_hints
from pgq_tui.palette_commands import ConsoleCommands
from pgq_tui.screens.prompt import PromptInput
from pgq_tui.view_model.list_filter import DEAD_FIELDS, JOB_FIELDS, RUN_FIELDS
from pgq_tui.widgets.help_overlay import HelpOverlay
from tests.console.stage import FakeBackend, console, screen_text, settle, shows
from tests.console.terminal import ROOT
from tests.tui.stage import HOSTILE

SIZE = (120, 36)
SCREEN_IDS = [screen.id for screen in SCREENS]


def test_every_command_has_an_id_of_its_own_a_description_and_a_door() -> None:
    assert len({one.id for one in COMMANDS}) == len(COMMANDS)
    for one in COMMANDS:
        assert one.description
        assert one.group in GROUPS
        assert one.keys or one.words, f"{one.id} can be reached by no key and no word"


@pytest.mark.parametrize("screen", SCREEN_IDS)
def test_no_key_means_two_things_on_one_screen(screen: str) -> None:
    seen: dict[str, str] = {}
    for one in commands_on(screen):
        for key in one.keys:
            assert key not in seen, f"{key} is {seen[key]} and {one.id} on {screen}"
            seen[key] = one.id


@pytest.mark.parametrize("screen", SCREEN_IDS)
def test_every_action_exists_where_it_is_bound(screen: str) -> None:
    for one in commands_on(screen):
        name = one.action.partition("(")[0]
        owner = PgqApp if name.startswith("app.") else SCREEN_TYPES[screen]
        assert hasattr(owner, f"action_{name.removeprefix('app.')}"), f"{one.id}: no action {name} on {screen}"


@pytest.mark.parametrize("screen", SCREEN_IDS)
def test_every_binding_has_an_id_and_a_tooltip(screen: str) -> None:
    for binding in [*bindings(), *bindings(screen)]:
        assert isinstance(binding, Binding)
        assert binding.id
        assert binding.tooltip


@pytest.mark.parametrize("screen", SCREEN_IDS)
def test_help_lists_every_command_of_a_screen(screen: str) -> None:
    wanted = {one.title for one in commands_on(screen)}

    assert {row.label for row in help_rows(screen, [])} == wanted


@pytest.mark.parametrize("screen", SCREEN_IDS)
async def test_every_usable_command_is_in_the_palette(screen: str) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(str(SCREEN_IDS.index(screen) + 1))
        await shows(pilot, "✓ live")
        provider = ConsoleCommands(app.screen)

        found = {hit.text.partition("  ")[0] async for hit in provider.discover()}

        usable = set(app.console_screen.usable_ids())
        assert {one.title for one in commands_on(screen) if one.id in usable and one.id != "palette"} <= found


def test_what_changes_the_system_is_marked_so() -> None:
    changing = {one.id for one in COMMANDS if one.is_mutating}

    assert changing == {
        "pause", "audit", "resume", "scale_up", "scale_down", "scale_to", "replay", "discard", "cancel_job",
        "drain_worker", "restart_worker", "undo",
    }  # fmt: skip


def test_hints_show_the_most_valuable_commands_that_can_be_used() -> None:
    hints = key_hints("dead", ["replay", "help", "mark"])

    assert {hint.action for hint in hints} == {"replay", "help", "mark"}


def test_words_of_the_command_line_are_unique() -> None:
    words = [word for one in COMMANDS for word in one.words]

    assert len(words) == len(set(words))
    assert all(find_by_word(word) for word in words)


@pytest.mark.parametrize("line", [text[:2_000] for text in HOSTILE] + ["'", '"', "\\", "pause '", "q q q", "9", "٣"])
def test_any_line_is_a_command_or_a_sentence(line: str) -> None:
    with contextlib.suppress(CommandLineError):
        assert parse_command(line).command in COMMANDS


async def test_help_runs_what_is_chosen() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("5")
        await shows(pilot, "Dead letters 53")
        await pilot.press("question_mark")
        await settle(pilot, until=lambda: isinstance(app.screen, HelpOverlay))
        app.screen.query_one("#help-search").value = "kind of failure"
        await pilot.press("enter")

        await shows(pilot, "Kinds of failure 4")


async def test_the_palette_goes_to_a_queue_by_its_name() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("ctrl+p")
        app.screen.query_one(CommandInput).value = "queue invoices"
        await pilot.pause(0.5)
        await pilot.press("enter")

        await shows(pilot, "queue invoices", "because")
        assert app.current_mode == "queues"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("scale mail 5", "scale mail: wants 5 workers"),
        ("scale mail many", "write :scale POOL NUMBER"),
        ("scale nobody 5", "there is no pool 'nobody'"),
        ("pause reports nightly run is broken", "pause reports: paused"),
        ("pause nothing", "there is no queue 'nothing'"),
        ("resume invoices", "resume invoices: resumed"),
        ("resume", "write :resume QUEUE"),
        ("audit emails failures", "no plain success of emails will leave a row"),
        ("audit emails sample 5 %", "only 5 % of the plain successes of emails"),
        ("audit reports all", "reports keeps all runs already"),
        ("audit emails sample 5", "write :audit QUEUE"),
        ("audit nobody all", "there is no queue 'nobody'"),
        ("audit", "audit works on 2 Queues"),
        ("filter queue:a", "this screen has no filter"),
        ("theme light", "theme pgq-light"),
        ("theme pink", "there is no theme 'pink'"),
        ("frobnicate", "there is no command 'frobnicate'"),
        ("r", "'r' may be"),
        ("replay", "replay works on 5 Dead letters"),
        ("[/x]", "there is no command '[/x]'"),
    ],
)
async def test_the_command_line_does_what_it_says(line: str, words: str) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("colon")
        app.screen.query_one("PromptInput").value = line
        await pilot.press("enter")

        await shows(pilot, words)


async def test_the_command_line_opens_a_screen_with_a_filter() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("colon")
        app.screen.query_one("PromptInput").value = "dead queue:images"
        await pilot.press("enter")

        await shows(pilot, "Dead letters 3", "/ queue:images")


async def test_the_command_line_remembers_and_completes() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("colon", *"dead", "enter")
        await shows(pilot, "Dead letters 53")
        await pilot.press("1")
        await pilot.press("colon", "up")
        field = app.screen.query_one("PromptInput")
        assert field.value == "dead"
        field.value = ""
        await pilot.press(*"pause inv")
        await settle(pilot, until=lambda: bool(field._suggestion))
        await pilot.press("tab")

        assert field.value == "pause invoices"


async def test_one_key_leads_back_to_the_screen_before() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("5", "2")
        await settle(pilot, until=lambda: app.current_mode == "queues")
        await pilot.press("backspace")

        await settle(pilot, until=lambda: app.current_mode == "dead")


async def test_a_queue_leads_to_its_jobs_runs_and_dead_letters() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        for key, words in (
            ("enter", "Jobs / queue:emails"),
            ("o", "Runs / queue:emails"),
            ("d", "Dead letters / queue:emails"),
        ):
            await pilot.press("2")
            await shows(pilot, "queue emails")
            await pilot.press(key)

            await shows(pilot, words)


async def test_tabs_and_hints_can_be_clicked() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.click("#tabs", offset=(14, 0))
        await shows(pilot, "queue emails")
        await pilot.click("#hints", offset=(2, 0))

        await settle(pilot, until=lambda: isinstance(app.screen, HelpOverlay))
        assert "Help: Queues" in screen_text(app)


async def test_of_a_paste_that_is_too_long_the_first_part_is_kept() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("3")
        await shows(pilot, "✓ live")
        await pilot.press("slash")
        field = app.console_screen.query_one(PromptInput)
        field.post_message(events.Paste("[%'\\" * 2_500 + "\nand another line"))

        await shows(pilot, "pasted the first 2,000 of 10,000 characters")

        assert field.value == "[%'\\" * 500


def test_the_documentation_lists_every_command_with_its_key_and_words() -> None:
    page = (ROOT / "docs" / "console.md").read_text()

    for one in COMMANDS:
        line = next((line for line in page.splitlines() if line.endswith(f"| {one.description} |")), None)
        assert line is not None, f"{one.id} is not in docs/console.md"
        assert not one.keys or f"| `{one.shown}` |" in line
        assert all(f"`:{word}" in line for word in one.words)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("screen", SCREEN_IDS)
async def test_help_is_not_cut_where_there_is_room(screen: str, read_only: bool) -> None:
    app = console(FakeBackend(read_only=read_only))

    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.press(str(SCREEN_IDS.index(screen) + 1), "question_mark")
        await settle(pilot, until=lambda: isinstance(app.screen, HelpOverlay))
        answers = app.screen.query_one(OptionList)
        await settle(pilot, until=lambda: answers.scrollable_content_region.width > 0)
        room = answers.scrollable_content_region.width

        assert [
            str(one.prompt) for one in answers.options if "…" in str(one.prompt) or len(str(one.prompt)) > room
        ] == []


@pytest.mark.parametrize(
    ("screen", "fields"),
    [("queues", ()), ("workers", ()), ("jobs", JOB_FIELDS), ("runs", RUN_FIELDS), ("dead", DEAD_FIELDS)],
)
def test_help_names_the_fields_that_narrow_the_list_of_its_screen(screen: str, fields: tuple[str, ...]) -> None:
    words = next(row.description for row in help_rows(screen, ["filter"]) if row.label == "filter").split()

    assert tuple(word.partition(":")[0] for word in words[3:] if ":" in word.rstrip(":")) == fields
