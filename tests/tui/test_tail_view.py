"""A tail follows while nobody looks back, and stands still as soon as somebody does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Offset
from textual.selection import Selection
from textual.widgets import Input

from pgq_tui.view_model import LogRecord, TailOptions, TimeFormat
from pgq_tui.view_model.tail_buffer import TailBuffer
from pgq_tui.widgets import TailView
from tests.tui.stage import SIZES, Stage, screen_lines, screen_text, settle

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)


def record(number: int, level: str = "succeeded", text: str = "") -> LogRecord:
    return LogRecord(number, NOW + timedelta(seconds=number), level, "w-01", f"line {number:05d} {text}")


def records(*numbers: int) -> list[LogRecord]:
    return [record(number) for number in numbers]


class Watcher(Stage):
    def on_tail_view_selected(self, message: TailView.Selected) -> None:
        self.messages.append(message.key)

    def on_tail_view_follow_changed(self, message: TailView.FollowChanged) -> None:
        self.messages.append((message.follow, message.unseen))


def shows(pilot_app: Stage, number: int) -> bool:
    return f"line {number:05d}" in screen_text(pilot_app)


def line_of(app: Stage, number: int) -> int:
    return next(y for y, line in enumerate(screen_lines(app)) if f"line {number:05d}" in line)


@pytest.mark.parametrize("size", SIZES)
async def test_a_following_tail_stays_at_the_end(size: tuple[int, int]) -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=size) as pilot:
        for start in range(0, 300, 50):
            tail.extend(records(*range(start, start + 50)))
        await settle(pilot)

        assert tail.follow
        assert shows(app, 299)

        await pilot.resize_terminal(size[0], size[1] - 6)
        await settle(pilot, until=lambda: shows(app, 299))
        assert tail.follow


@pytest.mark.parametrize("size", SIZES)
async def test_scrolling_up_stops_following_and_nothing_moves_under_the_cursor(size: tuple[int, int]) -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=size) as pilot:
        tail.extend(records(*range(200)))
        tail.focus()
        await pilot.press("k", "k", "k")
        await settle(pilot)
        held = tail.cursor_record
        assert held is not None
        y = line_of(app, 196)

        tail.extend(records(*range(200, 328)))
        await settle(pilot)

        assert not tail.follow
        assert tail.cursor_record is held
        assert line_of(app, 196) == y
        assert tail.unseen == 128
        assert "+128 new" in screen_text(app)
        assert app.messages[-1] == (False, 128)

        await pilot.press("G")
        await settle(pilot, until=lambda: shows(app, 327))
        assert tail.follow
        assert tail.unseen == 0


async def test_the_wheel_stops_following_and_the_end_resumes_it() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(*range(100)))
        await settle(pilot)

        tail.scroll_to(y=tail.max_scroll_y - 5, animate=False)
        await settle(pilot)
        assert not tail.follow

        tail.scroll_to(y=tail.max_scroll_y, animate=False)
        await settle(pilot)
        assert tail.follow


async def test_an_explicit_pause_holds_at_the_end() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(*range(100)))
        tail.focus()
        await pilot.press("f")
        tail.extend(records(*range(100, 110)))
        await settle(pilot)

        assert not tail.follow
        assert shows(app, 99)
        assert not shows(app, 109)

        await pilot.press("f")
        await settle(pilot, until=lambda: shows(app, 109))
        assert tail.follow


async def test_lines_that_leave_at_the_top_do_not_move_what_is_looked_at() -> None:
    tail = TailView("Runs", kept=200)
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(*range(200)))
        tail.focus()
        await pilot.press("pageup", "k")
        await settle(pilot)
        held = tail.cursor_record
        assert isinstance(held, LogRecord)
        y = line_of(app, int(str(held.key)))

        tail.extend(records(*range(200, 250)))
        await settle(pilot)

        assert tail.line_count == 200
        assert line_of(app, int(str(held.key))) == y
        assert tail.cursor_record is held


async def test_a_filter_keeps_the_cursor_on_its_record() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(record(n, "failed" if n % 10 == 0 else "succeeded") for n in range(200))
        tail.focus()
        await pilot.press(*["k"] * 10)
        await settle(pilot)
        assert tail.cursor_record == record(189)

        tail.set_levels({"failed"})
        await settle(pilot)
        assert tail.line_count == 20
        assert tail.cursor_record == record(190, "failed")
        assert not tail.follow

        tail.set_levels(None)
        await settle(pilot)
        assert tail.cursor_record == record(190, "failed")


async def test_a_text_filter_is_literal_and_ignores_case() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend([record(1, text="KeyError [/x] (a|b)*"), record(2, text="fine"), record(3, text="keyerror")])

        tail.set_filter("[/x] (A|B)*")
        await settle(pilot)
        assert tail.line_count == 1
        tail.set_filter("KEYERROR")
        assert tail.line_count == 2
        tail.extend([record(4, text="more keyerror"), record(5)])
        assert tail.line_count == 3
        tail.set_filter("")
        assert tail.line_count == 5


async def test_find_marks_hits_and_walks_them() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(record(n, text="needle" if n % 50 == 0 else "") for n in range(200))
        tail.focus()

        assert tail.find("NEEDLE") == 4
        await settle(pilot)
        assert tail.cursor_record == record(150, text="needle")
        assert tail.line_count == 200

        await pilot.press("N")
        assert tail.cursor_record == record(100, text="needle")
        await pilot.press("n", "n")
        assert tail.cursor_record == record(0, text="needle")
        await settle(pilot)
        assert "4 hits" in screen_text(app)
        tail.extend([record(500, text="needle")])
        assert tail.hits == 5


async def test_the_sideways_scroll_is_kept_when_lines_arrive() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend([record(n, text="x" * 200 + "END") for n in range(100)])
        tail.focus()
        await settle(pilot)
        for _ in range(30):
            tail.action_sideways(1)
        await settle(pilot)
        assert "xEND" in screen_text(app)
        left = tail.columns_left_out

        tail.extend([record(n, text="x" * 200 + "END") for n in range(100, 150)])
        await settle(pilot)

        assert tail.columns_left_out == left > 0
        assert "xEND" in screen_text(app)


async def test_enter_opens_the_record_under_the_cursor() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(1, 2, 3))
        tail.focus()
        await pilot.press("k", "enter")

        assert app.messages[-1] == 2


async def test_time_formats_change_what_is_shown_and_nothing_else() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(0))
        await settle(pilot)
        assert "12:04:31.000" in screen_text(app)

        tail.set_options(TailOptions(TimeFormat.OFF))
        await settle(pilot)
        assert "12:04:31" not in screen_text(app)
        assert shows(app, 0)
        assert tail.follow


async def test_a_rule_can_be_drawn_and_passes_every_filter() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(1))
        tail.set_filter("no such text")
        tail.draw_rule("mark-1", "marker 12:04:31 ops [/x]")
        await settle(pilot)

        assert "── marker 12:04:31 ops [/x] ──" in screen_text(app)


async def test_an_empty_tail_says_whether_nothing_came_or_the_filter_hides_it() -> None:
    tail = TailView("Runs", empty="no run since 12:00 [/x]")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "no run since 12:00 [/x]" in screen_text(app)

        tail.extend(records(1, 2))
        tail.set_levels({"failed"})
        await settle(pilot)
        assert "none of 2 lines passes the filter" in screen_text(app)


async def test_a_filter_neither_starts_nor_stops_following() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(record(n, "failed" if n % 10 == 0 else "succeeded") for n in range(400))
        await settle(pilot)
        tail.set_levels({"failed"})
        await settle(pilot)
        assert tail.follow

        tail.set_levels(None)
        tail.scroll_to(y=100, animate=False)
        await settle(pilot)
        assert not tail.follow
        tail.set_levels({"failed"})
        await settle(pilot)
        assert not tail.follow
        tail.set_levels(None)
        tail.extend(records(*range(500, 520)))
        await settle(pilot)
        assert not tail.follow
        assert tail.unseen == 20


async def test_text_chosen_with_the_mouse_can_be_copied() -> None:
    tail = TailView("Runs")
    app = Watcher(tail)
    async with app.run_test(size=(80, 24)) as pilot:
        tail.set_options(TailOptions(TimeFormat.OFF))
        tail.extend(record(n, text="[/x]") for n in range(50))
        await settle(pilot)

        chosen = tail.get_selection(Selection(Offset(15, 10), Offset(30, 11)))

        assert chosen is not None
        assert chosen[0] == "line 00010 [/x]\n✓ w-01         line 00011 [/x]"


async def test_clear_forgets_everything() -> None:
    tail = TailView("Runs")
    app = Watcher(tail, Input())
    async with app.run_test(size=(80, 24)) as pilot:
        tail.extend(records(*range(50)))
        tail.focus()
        await pilot.press("k")
        tail.clear()
        await settle(pilot)

        assert tail.cursor_record is None
        assert tail.follow
        assert tail.line_count == 0


BATCHES = st.lists(st.lists(st.sampled_from(["a", "b", "c needle", "d"]), max_size=12), max_size=12)


@given(BATCHES, st.integers(min_value=1, max_value=20), st.sampled_from(["", "a", "NEEDLE", "zz"]))
def test_a_buffer_shows_exactly_the_newest_that_pass(batches: list[list[str]], kept: int, words: str) -> None:
    buffer = TailBuffer(kept)
    buffer.set_needle("needle")
    everything: list[LogRecord] = []
    for number, batch in enumerate(batches):
        if number == len(batches) // 2:
            buffer.set_filter(words)
        new = [LogRecord((number, index), None, "ok", "", text) for index, text in enumerate(batch)]
        everything += new
        buffer.extend(new)
    if len(batches) < 1:
        buffer.set_filter(words)

    expected = [one for one in everything[-kept:] if words.casefold() in one.search_text.casefold()]

    assert [buffer[index] for index in range(len(buffer))] == expected
    assert buffer.hits == sum("needle" in one.search_text for one in expected)


@given(BATCHES, st.integers(min_value=1, max_value=20))
def test_a_buffer_reports_what_left_and_what_came(batches: list[list[str]], kept: int) -> None:
    buffer = TailBuffer(kept)
    buffer.set_filter("a")
    for number, batch in enumerate(batches):
        before = len(buffer)
        change = buffer.extend(LogRecord((number, index), None, "ok", "", text) for index, text in enumerate(batch))

        assert len(buffer) == before - change.gone + change.added
