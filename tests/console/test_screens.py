"""Every screen in every size and state: nothing raises, and what matters can be read."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from pgq_core.domain.snapshot import Overview
from pgq_tui.command_list import SCREENS
from pgq_tui.pictures import empty_shop
from pgq_tui.view_model.glyphs import ASCII
from tests.console.stage import (
    LOST,
    NO_RIGHTS,
    NO_SCHEMA,
    SIZES,
    FakeBackend,
    console,
    screen_lines,
    screen_text,
    shows,
)

FACTS = {
    "dash": ("Throughput/s", "Queues 6", "emails", "812", "Workers 6", "mail", "18/20", "crash loop", "dead 53"),
    "queues": ("Queues 6", "invoices", "371", "queue emails", "never drains like this"),
    "jobs": ("Jobs 119", "881209", "scheduled", "resize_image", "job 881209"),
    "runs": ("Running now 9", "nightly_report", "880999", "make_invoice", "follow"),
    "dead": ("Dead letters 53", "send_order_confirmation", "SMTPServerDisconnected", "dead letter 1093", "exhausted"),
    "workers": ("Workers 6", "images", "1/2 next", "5b0e77d1", "draining", "SIGKILL", "pool images"),
}
NOTHING = {
    "dash": "nothing has run in this window",
    "queues": "no queue has jobs or workers yet",
    "jobs": "no live job",
    "runs": "nothing runs at this moment",
    "dead": "no dead letters",
    "workers": "no worker runs",
}
KEYS = {screen.id: str(screen.number) for screen in SCREENS}
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
smallest_size = pytest.mark.parametrize(
    "size",
    [SIZES[0], pytest.param((160, 45), marks=pytest.mark.slow)],
    ids=lambda size: f"{size[0]}x{size[1]}",
)


@every_size
async def test_a_busy_shop_shows_its_facts(size: tuple[int, int]) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=size) as pilot:
        for screen, key in KEYS.items():
            await pilot.press(key)

            await shows(pilot, *FACTS[screen])
            lines = screen_lines(app)
            assert len(lines) == size[1]
            assert "✓ live" in lines[-2]
            assert "? help" in lines[-1]


@smallest_size
async def test_an_empty_database_says_why_it_is_empty(size: tuple[int, int]) -> None:
    app = console(FakeBackend(empty_shop()))

    async with app.run_test(size=size) as pilot:
        for screen, key in KEYS.items():
            await pilot.press(key)

            await shows(pilot, NOTHING[screen], "✓ live")


@smallest_size
async def test_a_silent_database_shows_the_columns_and_that_it_loads(size: tuple[int, int]) -> None:
    backend = FakeBackend()
    backend.is_silent = True
    app = console(backend)

    async with app.run_test(size=size) as pilot:
        for key in KEYS.values():
            await pilot.press(key)

            await shows(pilot, "loading", "looking ...", "? help")


@smallest_size
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (LOST, ("cannot be reached", "connection refused", "r tries now")),
        (NO_SCHEMA, ("not ready for pgq", "pgq-core migrate --schema")),
        (NO_RIGHTS, ("may not look", "GRANT SELECT ON jobs TO viewer")),
        (RuntimeError("a fault of ours"), ("could not be read", "a fault of ours")),
    ],
    ids=["lost", "no schema", "no rights", "fault"],
)
async def test_a_database_that_was_never_read_says_what_to_do(
    size: tuple[int, int], fault: Exception, words: tuple[str, ...]
) -> None:
    backend = FakeBackend()
    backend.fault = fault
    app = console(backend)

    async with app.run_test(size=size) as pilot:
        for key in KEYS.values():
            await pilot.press(key)

            await shows(pilot, *words)


@every_size
async def test_a_lost_database_leaves_its_last_picture_with_its_age(size: tuple[int, int]) -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=size) as pilot:
        # All screens where room is scarce; elsewhere the two that differ most.
        for screen in KEYS if size == SIZES[0] else ("dash", "dead"):
            await pilot.press(KEYS[screen])
            await shows(pilot, *FACTS[screen][:2])
            backend.fault = LOST

            await shows(pilot, "database lost", "connection refused", "data from 12:04:3", *FACTS[screen][:2])
            assert app.screen.has_class("-dim")

            backend.fault = None
            await pilot.press("r")
            await shows(pilot, "✓ live")
            assert "database lost" not in screen_text(app)
            assert not app.screen.has_class("-dim")


@smallest_size
async def test_a_read_only_console_offers_nothing_that_changes(size: tuple[int, int]) -> None:
    app = console(FakeBackend(read_only=True), is_read_only=True)

    async with app.run_test(size=size) as pilot:
        for key in KEYS.values():
            await pilot.press(key)

            await shows(pilot, "? help", "✓ live")
            hints = screen_lines(app)[-1]
            assert not any(word in hints for word in ("p pause", "replay", "discard", "more", "fewer", "drain", "undo"))
        assert "[ro]" in screen_text(app)


async def test_terminals_without_unicode_get_ascii_only() -> None:
    app = console(FakeBackend(), glyphs=ASCII)

    async with app.run_test(size=(160, 45)) as pilot:
        for screen, key in KEYS.items():
            await pilot.press(key)
            await shows(pilot, "+ live", FACTS[screen][0])

            text = screen_text(app)

            assert text.isascii(), sorted({character for character in text if not character.isascii()})


async def test_switching_screens_keeps_the_place_in_each() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("5")
        await shows(pilot, "dead letter 1093")
        await pilot.press("down", "down")
        await shows(pilot, "dead letter 1091")
        await pilot.press("2")
        await shows(pilot, "queue emails")

        await pilot.press("5")

        await shows(pilot, "dead letter 1091")


async def test_a_hidden_screen_reads_nothing() -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("5")
        await shows(pilot, "Dead letters 53")
        await pilot.press("2")
        await shows(pilot, "queue emails")
        await reads_overviews(pilot, backend, 2)  # what was under way when the screen was left
        backend.calls.clear()

        await reads_overviews(pilot, backend, 3)

        assert {name for name, _ in backend.calls} == {"overview"}


async def reads_overviews(pilot: Pilot[None], backend: FakeBackend, count: int) -> None:
    """Until so many more were read."""
    before = len(backend.calls)
    while [name for name, _ in backend.calls[before:]].count("overview") < count:
        await pilot.pause(0.05)


async def test_what_needs_attention_leads_to_its_place() -> None:
    app = console(FakeBackend())

    async with app.run_test(size=(160, 45)) as pilot:
        await shows(pilot, "Needs attention")
        await pilot.press("exclamation_mark", "down", "enter")

        await shows(pilot, "queue emails")
        assert app.current_mode == "queues"


async def test_old_data_is_never_called_live() -> None:
    backend = FakeBackend()
    app = console(backend)
    now = [1_000.0]
    app.session.monotonic = lambda: now[0]

    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "✓ live")
        backend.is_silent = True
        await pilot.pause(0.3)
        now[0] += 60
        app.console_screen.refresh_chrome()

        await shows(pilot, "data 1m00s old")


async def test_a_frozen_screen_stands_still_until_it_is_released() -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("P")
        await shows(pilot, "frozen")
        await pilot.pause(0.3)
        backend.shop.queues.clear()
        await pilot.pause(0.4)
        assert "emails" in screen_text(app)

        await pilot.press("P")

        await shows(pilot, "Queues 0")


async def test_an_answer_that_came_late_does_not_replace_a_newer_question() -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("5")
        await shows(pilot, "Dead letters 53")
        stale = app.screen._answer
        await pilot.press("V")
        await shows(pilot, "Kinds of failure 4")

        app.screen.post_message(stale)
        await pilot.pause(0.1)

        assert "Kinds of failure 4" in screen_text(app)


async def test_the_overview_of_another_moment_is_shown_as_its_moment() -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "✓ live")

        assert isinstance(app.session.overview, Overview)
        assert app.session.now >= app.session.overview.taken_at
