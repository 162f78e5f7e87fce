"""The arithmetic of charts: round axes, columns that stand still, stacks without gaps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgq_tui.view_model import ChartData, ChartSeries, Token
from pgq_tui.view_model.chart_canvas import BLANK, EIGHTHS, Inks, draw_line, draw_stack, stack_edges
from pgq_tui.view_model.chart_scale import Grid, column_values, time_grid, time_ticks, value_axis

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)
VALUES = st.lists(st.none() | st.floats(min_value=0, max_value=1e6), min_size=1, max_size=60)


def chart(*stacks: list[float | None], bucket: float = 5, line: list[float | None] | None = None) -> ChartData:
    count = max([len(stack) for stack in stacks] or [0])
    step = timedelta(seconds=bucket)
    tokens = [Token.FAILED, Token.RETRY, Token.OK]
    return ChartData(
        times=tuple(NOW - step * (count - index) for index in range(count)),
        bucket=step,
        now=NOW,
        window=step * max(count, 1),
        series=tuple(
            ChartSeries(f"s{i}", tokens[i % 3], tuple(stack), "▓▒█"[i % 3], "xo#"[i % 3])
            for i, stack in enumerate(stacks)
        ),
        lines=(ChartSeries("in", Token.RUNNING, tuple(line)),) if line else (),
    )


@given(st.floats(min_value=0, max_value=1e9), st.integers(min_value=1, max_value=60))
def test_an_axis_reaches_the_highest_value_and_wastes_less_than_two_thirds(highest: float, rows: int) -> None:
    axis = value_axis(highest, rows)

    assert axis.top >= highest * (1 - 1e-9)
    if highest > 1e-5:
        assert axis.top <= highest * 3
    assert axis.ticks[0].label == "0"
    assert all(0 <= tick.row <= rows for tick in axis.ticks)
    assert len({tick.label for tick in axis.ticks}) == len(axis.ticks)


@given(
    st.integers(min_value=0, max_value=2_000_000_000),
    st.floats(min_value=1, max_value=86_400 * 30),
    st.integers(min_value=1, max_value=300),
)
def test_clock_labels_do_not_touch_and_stay_inside(start: int, window: float, columns: int) -> None:
    ticks = time_ticks(start, start + window, columns, UTC)

    for tick, following in pairwise(ticks):
        assert tick.column + len(tick.label) < following.column
    assert all(tick.column + len(tick.label) <= columns for tick in ticks)


@given(VALUES, st.integers(min_value=1, max_value=200))
def test_columns_keep_the_mean_of_what_is_known(values: list[float | None], columns: int) -> None:
    starts = [1_000.0 + 5 * index for index in range(len(values))]
    grid = time_grid(starts[-1] + 5, 5.0 * len(values), columns)
    known = [value for value in values if value is not None]

    shown = [value for value in column_values(starts, 5, values, grid) if value is not None]

    assert all(min(known) - 1e-6 <= value <= max(known) + 1e-6 for value in shown)
    # Columns stand on whole multiples of their length, so that at most one column of the past is left out.
    assert shown or not known or None in values or columns == 1


def test_a_past_column_does_not_change_when_time_goes_on() -> None:
    values = [float(index % 7) for index in range(200)]
    starts = [1_000.0 + 5 * index for index in range(200)]

    def column_at(moment: float, end: float) -> float | None:
        grid = time_grid(end, 300, 37)
        column = grid.column_of(moment)
        assert column is not None
        return column_values(starts, 5, values, grid)[column]

    before = column_at(1_700, 1_900)

    assert all(column_at(1_700, 1_900 + later) == pytest.approx(before) for later in range(1, 90, 7))


@given(
    st.lists(VALUES, min_size=1, max_size=4),
    st.integers(min_value=1, max_value=20),
    st.integers(min_value=1, max_value=80),
)
def test_stacks_rise_and_stay_inside_the_plot(stacks: list[list[float | None]], rows: int, columns: int) -> None:
    data = chart(*[stack[: len(stacks[0])] + [None] * max(len(stacks[0]) - len(stack), 0) for stack in stacks])
    grid = time_grid(data.end, data.window.total_seconds(), columns)
    axis = value_axis(100.0, rows)

    for edges in stack_edges(data, grid, axis):
        assert edges == sorted(edges)
        assert all(0 <= edge <= rows * 8 for edge in edges)


def grid_of(data: ChartData, columns: int) -> Grid:
    return time_grid(data.end, data.window.total_seconds(), columns, phase=data.phase)


def test_a_value_fills_the_rows_up_to_its_label() -> None:
    data = chart([30.0])
    axis = value_axis(40, 8)
    cells = draw_stack(data, grid_of(data, 1), axis, Inks())

    filled = sum(row[0] != BLANK for row in cells)

    assert filled == round(30 / axis.top * 8)


def test_one_failure_among_many_is_seen() -> None:
    data = chart([0.01], [1.0], [500.0])
    cells = draw_stack(data, grid_of(data, 1), value_axis(600, 10), Inks())

    assert cells[-1][0].char == EIGHTHS[0]
    assert cells[-1][0].ink == 0


def test_zero_is_drawn_as_nothing_and_unknown_as_well() -> None:
    data = chart([0.0, None, 5.0])
    cells = draw_stack(data, grid_of(data, 3), value_axis(5, 4), Inks())

    assert [cells[-1][column] == BLANK for column in range(3)] == [True, True, False]


def test_a_boundary_between_two_series_has_both_colours() -> None:
    data = chart([4.0], [4.0])
    axis = value_axis(8, 2)
    cells = draw_stack(data, grid_of(data, 1), axis, Inks())

    shown = {(cell.ink, cell.ground) for row in cells for cell in row}

    assert shown <= {(0, 0), (1, 1), (0, 1), (1, None), (0, None), (None, None)}
    assert {0, 1} <= {cell.ink for row in cells for cell in row}


@given(st.lists(VALUES, min_size=1, max_size=3), st.integers(min_value=1, max_value=12), st.booleans(), st.booleans())
def test_every_cell_is_one_sign_in_every_profile(
    stacks: list[list[float | None]], rows: int, has_colour: bool, is_ascii: bool
) -> None:
    count = len(stacks[0])
    data = chart(*[(stack * count)[:count] for stack in stacks], line=(stacks[-1] * count)[:count])
    grid = grid_of(data, 30)
    inks = Inks(has_colour=has_colour, is_ascii=is_ascii)
    axis = value_axis(1e6, rows)
    cells = draw_stack(data, grid, axis, inks)
    draw_line(cells, data, 0, grid=grid, axis=axis, inks=inks)

    assert len(cells) == rows
    assert all(len(row) == 30 and all(len(cell.char) == 1 for cell in row) for row in cells)
    if is_ascii:
        assert all(cell.char.isascii() for row in cells for cell in row)


def test_a_line_is_one_joined_stroke() -> None:
    data = chart([0.0] * 4, line=[1.0, 9.0, 9.0, 1.0])
    grid = grid_of(data, 4)
    axis = value_axis(10, 5)
    cells = draw_stack(data, grid, axis, Inks())
    draw_line(cells, data, 0, grid=grid, axis=axis, inks=Inks())

    drawn = ["".join(cell.char for cell in row) for row in cells]

    assert drawn == [" ╭─╮", " │ │", " │ │", " │ │", "─╯ ╰"]
