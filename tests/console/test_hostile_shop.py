"""The worst text in every field that comes from outside: shown as it is, on every screen, and it can do nothing."""

from __future__ import annotations

import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import pytest

from pgq_tui.backend.protocol import PAGE_SIZE
from pgq_tui.command_list import SCREENS
from pgq_tui.pictures import Shop, busy_shop
from pgq_tui.screens.journal import Outcome
from pgq_tui.view_model.glyphs import ASCII
from pgq_tui.widgets.row_table import RowTable
from tests.console.stage import FakeBackend, console, screen_lines, settle, shows
from tests.tui.stage import HOSTILE

T = TypeVar("T")
LOOKED_AT = 9
KEPT = frozenset(
    {"id", "host", "pool", "state", "status", "outcome", "wanted", "reason", "supervisor_id", "fingerprint"}
)
"""Names that join rows to one another, and words of a closed set that the database enforces."""


def poisoned(value: T, text: str) -> T:
    """The same row with the text in each free field."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for field in fields(value):
        content = getattr(value, field.name)
        if field.name in KEPT:
            continue
        if isinstance(content, str):
            changes[field.name] = f"{text}{content}" if field.name in {"queue", "job_type", "name"} else text
        elif isinstance(content, tuple) and content and isinstance(content[0], str):
            changes[field.name] = tuple(f"{text}{part}" for part in content)
        elif is_dataclass(content):
            changes[field.name] = poisoned(content, text)
        elif content is None and field.name in {
            "pause_reason",
            "error",
            "last_error",
            "note",
            "traceback",
            "waiting_for",
        }:
            changes[field.name] = text
    return replace(value, **changes)


def poisoned_shop(*texts: str) -> Shop:
    """Each row gets the next of the texts."""
    shop = busy_shop()
    for name in ("queues", "workers", "pools", "runs", "running", "jobs", "letters"):
        rows = getattr(shop, name)
        setattr(shop, name, [poisoned(row, texts[index % len(texts)]) for index, row in enumerate(rows)])
    shop.output = {worker.id: texts[index % len(texts)] for index, worker in enumerate(shop.workers)}
    return shop


@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=() if n == 0 else pytest.mark.slow) for n in range(0, len(HOSTILE), LOOKED_AT)],
)
async def test_hostile_text_is_shown_and_does_nothing(first: int) -> None:
    texts = [*HOSTILE[first:], *HOSTILE[:first]]
    app = console(FakeBackend(poisoned_shop(*texts)), interval=5.0)

    async with app.run_test(size=(100, 30)) as pilot:
        for screen in SCREENS:
            await pilot.press(str(screen.number))
            await shows(pilot, "live")
            assert_harmless(screen_lines(app))
        # Down the rows, so that each text has been in the detail as well.
        await pilot.press("5")
        for _ in range(LOOKED_AT):
            await pilot.press("down")
            assert_harmless(screen_lines(app))
        await pilot.press("R")
        await settle(pilot)
        assert_harmless(screen_lines(app))
        await pilot.press("escape", "1", "ctrl+p")
        await settle(pilot)
        assert_harmless(screen_lines(app))
        assert app.is_running


async def test_hostile_text_becomes_ascii_where_nothing_else_is_known() -> None:
    app = console(FakeBackend(poisoned_shop(*HOSTILE)), glyphs=ASCII, interval=5.0)

    async with app.run_test(size=(100, 30)) as pilot:
        for screen in SCREENS:
            await pilot.press(str(screen.number))
            await shows(pilot, "live")

            assert all(line.isascii() for line in screen_lines(app))


def assert_harmless(lines: list[str]) -> None:
    for line in lines:
        for character in line:
            assert unicodedata.category(character) not in {"Cc", "Cs"}, repr(line)


async def test_brackets_are_shown_literally() -> None:
    text = "[/] [red]x[/red] [@click=app.quit]z[/] [worker-1]"
    app = console(FakeBackend(poisoned_shop(text)), interval=5.0)

    async with app.run_test(size=(160, 45)) as pilot:
        for screen in SCREENS:
            await pilot.press(str(screen.number))

            await shows(pilot, "live", "[/] [red]x[/red]")


@pytest.mark.parametrize(
    ("screen", "kind", "first"),
    [
        pytest.param("4", "filter", 0, marks=pytest.mark.slow),
        ("4", "find", 1),
        pytest.param("5", "filter", 2, marks=pytest.mark.slow),
        ("5", "command", 0),
    ],
)
async def test_anything_may_be_typed_into_filter_and_command_line(screen: str, kind: str, first: int) -> None:
    app = console(FakeBackend(), interval=5.0)

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(screen)
        await shows(pilot, "live")
        for text in HOSTILE[first::2]:
            app.screen.ask(kind, sign="/")
            app.screen.query_one("PromptInput").value = text[:3_000]
            await pilot.press("enter")
            assert_harmless(screen_lines(app))
        assert app.is_running


async def test_a_payload_of_ten_megabytes_is_shown_in_part() -> None:
    shop = busy_shop()
    first = shop.letters[0]
    big = '{"type": "x", "data": "' + "y" * 64_000
    detail = replace(first.detail, payload_text=big, payload_size=10_000_000)
    shop.letters[0] = replace(first, detail=detail)
    app = console(FakeBackend(shop))

    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.press("5")

        await shows(pilot, "payload 9.5 MB", "yyyy")


async def test_toasts_and_the_status_line_show_hostile_text_to_the_letter() -> None:
    words = "[/] [red]x[/red] [link=http://x]y[/link] :smile: {x} %s"
    app = console(FakeBackend(), interval=5.0)

    async with app.run_test(size=(160, 45), notifications=True) as pilot:
        await shows(pilot, "live")
        app.console_screen.report("act", Outcome(words))
        await shows(pilot, words)
        app.console_screen.report("act", Outcome("\x1b[2J\x1b]0;title\x07\x1b]52;c;eA==\x07" + words, is_failure=True))

        await settle(pilot)
        assert_harmless(screen_lines(app))
        assert app.is_running


async def test_bracketed_lines_of_a_worker_are_equal_in_view_and_copy() -> None:
    lines = ['["a", 1, ["b"]]', "[info] x", "[2026-01-01] [worker-1] done [[/]]"]
    backend = FakeBackend()
    worker = next(one for one in backend.shop.workers if one.stopped_at is None)
    backend.shop.output[worker.id] = "\n".join(lines)
    app = console(backend)

    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        app.screen.query_one(RowTable).go_to(f"worker {worker.id}")
        await shows(pilot, f"worker {worker.id}")
        await pilot.press("l")
        await shows(pilot, f"Output of {worker.id}", *lines)
        await pilot.press("y")

        await settle(pilot, until=lambda: app.clipboard == "\n".join(lines))


@pytest.mark.slow
async def test_fifty_thousand_dead_letters_are_paged_and_all_of_them_can_be_marked() -> None:
    shop = busy_shop()
    first = shop.letters[0]
    shop.letters = [replace(first, view=replace(first.view, id=number)) for number in range(50_000, 0, -1)]
    app = console(FakeBackend(shop), interval=5.0)

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("5")
        await shows(pilot, "Dead letters 50.0k", "dead letter 50000")
        table = app.screen.query_one(RowTable)
        for _ in range(50):
            await pilot.press("down")
        assert table.cursor_key == "49950"
        assert table.row_count == PAGE_SIZE

        await pilot.press("A")

        await shows(pilot, "50,000 marked")


async def test_ids_beyond_two_to_the_53_are_shown_to_the_last_digit() -> None:
    shop = busy_shop()
    huge = 2**63 - 1
    shop.letters[0] = replace(shop.letters[0], view=replace(shop.letters[0].view, id=huge, original_job_id=huge - 1))
    shop.jobs[0] = replace(shop.jobs[0], id=huge)
    app = console(FakeBackend(shop))

    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.press("5")
        await settle(pilot, until=lambda: any(line[1:].split()[:1] == [str(huge)] for line in screen_lines(app)))
        await pilot.press("3")

        await settle(pilot, until=lambda: any(line[1:].split()[:1] == [str(huge)] for line in screen_lines(app)))
