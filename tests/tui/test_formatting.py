"""Formatting is pure: its examples run, and its promises hold for any number."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

import pgq_tui.view_model
from pgq_tui.view_model import (
    ASCII,
    UNICODE,
    bar,
    format_age,
    format_bytes,
    format_clock,
    format_count,
    format_duration,
    format_percent,
    format_rate,
    format_span,
    pick_glyphs,
    sparkline,
    status_look,
)

MODULES = sorted(
    [f"pgq_tui.view_model.{module.name}" for module in pkgutil.iter_modules(pgq_tui.view_model.__path__)]
    + ["pgq_tui.theme", "pgq_tui.widgets.confirm_dialog"]
)
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True) | st.none()


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))

    assert results.failed == 0


def test_neither_the_package_nor_the_formatting_imports_textual() -> None:
    code = (
        "import sys, pgq_tui, pgq_tui.view_model; sys.exit(int(any(m.split('.')[0] == 'textual' for m in sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)

    assert done.returncode == 0


@given(ANY_FLOAT)
def test_a_duration_is_short_whatever_the_value(seconds: float | None) -> None:
    if seconds is not None and abs(seconds) > 86_400 * 9_999:
        seconds = None
    for text in (format_duration(seconds), format_span(seconds)):
        assert 1 <= len(text) <= 7


@given(st.floats(min_value=0, max_value=1e9))
def test_a_longer_duration_is_never_shown_in_a_smaller_unit(seconds: float) -> None:
    units = ["ms", "s", "m", "h", "d"]

    def unit(text: str) -> int:
        return max(index for index, name in enumerate(units) if name[0] in text.replace("ms", "M").replace("M", ""))

    if seconds >= 1:
        assert unit(format_duration(seconds + 3_700)) >= unit(format_duration(seconds))


@given(st.integers(min_value=0, max_value=2**63))
@example(999_950_000_000_000)
def test_a_count_that_a_table_can_hold_has_at_most_seven_characters(count: int) -> None:
    assert len(format_count(count)) <= 7


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_rate_above_zero_is_not_shown_as_zero(rate: float) -> None:
    assert (format_rate(rate, unit="") == "0.0") == (rate == 0)


@given(st.floats(min_value=0, max_value=1))
def test_a_share_below_all_is_not_shown_as_all(share: float) -> None:
    assert (format_percent(share) == "100%") == (share == 1)
    assert (format_percent(share) == "0.0%") == (share == 0)


@given(ANY_FLOAT)
def test_formatters_take_any_number(number: float | None) -> None:
    assert format_rate(number)
    assert format_percent(number)
    assert sparkline([number, 1.0])
    if number is None or math.isfinite(number):
        assert format_bytes(number)
    if number is not None and math.isfinite(number) and abs(number) < 1e12:
        assert format_age(number)


def test_ids_above_two_to_the_53_are_exact() -> None:
    assert pgq_tui.view_model.format_id(2**53 + 1) == "9007199254740993"


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(min_value=0, max_value=60))
def test_a_bar_has_exactly_its_width(share: float, width: int) -> None:
    assert len(bar(share, width)) == width
    assert len(bar(share, width, glyphs=ASCII)) == width


@given(st.lists(st.none() | st.floats(min_value=0, max_value=1e9), max_size=80), st.integers(min_value=1, max_value=40))
def test_a_sparkline_has_exactly_its_width(values: list[float | None], width: int) -> None:
    assert cell_len(sparkline(values, width=width)) == width
    assert sparkline(values, width=width, glyphs=ASCII).isascii()


def test_a_flat_rate_looks_flat() -> None:
    assert len(set(sparkline([100, 101, 100, 99]))) == 1


@pytest.mark.parametrize(
    "word", ["succeeded", "retried", "dead", "lost", "released", "snoozed", "cancelled", "discarded"]
)
def test_every_outcome_has_an_icon_of_one_cell_in_both_sets(word: str) -> None:
    for glyphs in (UNICODE, ASCII):
        assert cell_len(status_look(word, glyphs).icon) == 1
    assert status_look(word, ASCII).icon.isascii()


def test_icons_differ_from_one_another_so_that_colour_is_not_needed() -> None:
    for glyphs in (UNICODE, ASCII):
        assert len(set(glyphs.icons.values())) == len(glyphs.icons)


def test_a_terminal_that_is_not_utf8_gets_ascii() -> None:
    assert pick_glyphs("auto", "ISO-8859-1") is ASCII
    assert pick_glyphs("unicode", "ISO-8859-1") is UNICODE


def test_a_missing_time_is_a_dash() -> None:
    assert format_clock(None) == "–"
