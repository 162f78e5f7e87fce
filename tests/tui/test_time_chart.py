"""The chart widget at every size: legend, marks, time cursor, and no exception anywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgq_tui.view_model import ASCII, ChartData, ChartMark, ChartSeries, Token
from pgq_tui.widgets import TimeChart
from tests.tui.stage import SIZES, Stage, screen_text, settle

NOW = datetime(2026, 3, 5, 12, 4, 30, tzinfo=UTC)
STEP = timedelta(seconds=5)


def throughput(count: int = 180, *, marks: tuple[ChartMark, ...] = ()) -> ChartData:
    ramp = tuple(float(20 + index % 17) for index in range(count))
    return ChartData(
        times=tuple(NOW - STEP * (count - index) for index in range(count)),
        bucket=STEP,
        now=NOW,
        window=STEP * count,
        series=(
            ChartSeries("fail", Token.FAILED, tuple(value / 10 for value in ramp), "▓", "x"),
            ChartSeries("ok", Token.OK, ramp, "█", "#"),
        ),
        lines=(ChartSeries("in", Token.TEXT, ramp),),
        marks=marks,
        empty="nothing ran [/x] here",
    )


class Watcher(Stage):
    def on_time_chart_cursor_moved(self, message: TimeChart.CursorMoved) -> None:
        self.messages.append(message.at)


@pytest.mark.parametrize("size", SIZES)
async def test_the_chart_shows_name_legend_axis_and_clock(size: tuple[int, int]) -> None:
    chart = TimeChart("Throughput/s", note="15m")
    async with Stage(chart).run_test(size=size) as pilot:
        chart.show(throughput())
        await settle(pilot)
        shown = screen_text(pilot.app)

        assert "Throughput/s · 15m" in shown
        assert "█ ok 29.0" in shown
        assert "▓ fail 2.9" in shown
        assert "12:00" in shown
        assert "0└" in shown
        assert "█████" in shown


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (8, 3), (20, 5), (24, 7), (40, 9), (80, 24), (160, 45), (300, 60)])
@pytest.mark.parametrize("theme", ["pgq-dark", "pgq-ansi"])
async def test_the_chart_draws_at_any_size(size: tuple[int, int], theme: str) -> None:
    chart = TimeChart("Throughput/s", note="15m")
    marks = (ChartMark(NOW - STEP * 20, "deploy [/x] 9c1"), ChartMark(NOW - STEP, "pause"), ChartMark(NOW, "now"))
    async with Stage(chart, theme=theme).run_test(size=size) as pilot:
        chart.show(throughput(marks=marks))
        chart.focus()
        await pilot.press("left", "left")
        await settle(pilot)

        for y in range(chart.size.height):
            assert chart.render_line(y).cell_length == chart.size.width


async def test_resizing_wildly_ends_in_the_right_picture() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(80, 24)) as pilot:
        chart.show(throughput())
        for width, height in [(1, 1), (500, 200), (3, 2), (20, 5), (80, 24)]:
            await pilot.resize_terminal(width, height)
        await settle(pilot)

        assert "12:00" in screen_text(pilot.app)


async def test_marks_stand_above_their_moment() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(80, 24)) as pilot:
        chart.show(throughput(marks=(ChartMark(NOW - STEP * 90, "deploy [red]9c1[/]"),)))
        await settle(pilot)

        assert "▲deploy [red]9c1[/]" in screen_text(pilot.app)


async def test_the_time_cursor_shows_the_values_of_its_moment() -> None:
    chart = TimeChart("Throughput/s")
    app = Watcher(chart)
    async with app.run_test(size=(100, 24)) as pilot:
        chart.show(throughput())
        chart.focus()
        await pilot.press("left", "left", "left")
        await settle(pilot)

        assert chart.cursor is not None
        assert NOW - chart.cursor < timedelta(seconds=60)
        assert f"{chart.cursor:%H:%M:%S}" in screen_text(app)
        assert app.messages[-1] == chart.cursor

        await pilot.press("end")
        await settle(pilot)
        assert chart.cursor is None
        assert app.messages[-1] is None

        await pilot.press("home")
        assert chart.cursor is not None
        assert NOW - chart.cursor > timedelta(minutes=14)


async def test_moving_right_past_the_end_returns_to_live() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(100, 24)) as pilot:
        chart.show(throughput())
        chart.focus()
        await pilot.press("left", "left", *["right"] * 4)

        assert chart.cursor is None


async def test_an_empty_chart_says_why() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(80, 24)) as pilot:
        chart.show(throughput(0))
        await settle(pilot)

        assert "nothing ran [/x] here" in screen_text(pilot.app)


async def test_the_same_data_is_not_drawn_again() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(80, 24)) as pilot:
        chart.show(throughput())
        await settle(pilot)
        drawn = chart._strips

        chart.show(throughput())
        await settle(pilot)

        assert chart._strips is drawn


async def test_the_scale_stands_still_while_values_change_a_little() -> None:
    chart = TimeChart("Throughput/s")
    async with Stage(chart).run_test(size=(80, 24)) as pilot:
        chart.show(throughput(180))
        await settle(pilot)
        axis = chart._axis

        chart.show(throughput(175))
        await settle(pilot)

        assert chart._axis is axis


async def test_an_ascii_terminal_gets_ascii_alone() -> None:
    chart = TimeChart("Throughput/s", note="15m")
    async with Stage(chart, theme="pgq-ansi", glyphs=ASCII).run_test(size=(80, 24)) as pilot:
        chart.show(throughput(marks=(ChartMark(NOW - STEP * 40, "deploy"),)))
        await settle(pilot)

        assert screen_text(pilot.app).isascii()
