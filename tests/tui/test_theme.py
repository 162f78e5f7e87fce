"""Every meaning has a colour in every theme, and it can be read on its ground."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import Theme
from textual.widgets import Static

from pgq_tui.theme import ANSI, DARK, LIGHT, THEMES, default_theme, install_themes, palette_of, token_variables
from pgq_tui.view_model import TableColumn, Token
from pgq_tui.widgets import RowTable, TimeChart
from tests.tui.stage import Stage, settle

DECORATION = {Token.FAINT}


def contrast(one: str, other: str) -> float:
    def luminance(colour: Color) -> float:
        parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted([luminance(Color.parse(one)), luminance(Color.parse(other))])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_every_meaning_can_be_read_on_every_ground(theme: Theme) -> None:
    grounds = [theme.background, theme.surface, theme.panel, theme.variables["block-cursor-background"]]
    for token in set(Token) - DECORATION:
        for ground in grounds:
            assert ground is not None
            least = 3.0 if token is Token.DIM or ground == grounds[-1] else 4.5
            assert contrast(theme.variables[token.value], ground) >= least, (token, ground)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_theme_has_every_token(theme: Theme) -> None:
    assert {token.value for token in Token} <= theme.variables.keys()


async def test_a_theme_of_another_house_gets_our_meanings() -> None:
    app = Stage(Static("x"))
    async with app.run_test():
        app.theme = "nord"

        assert palette_of(app).style(Token.OK).color is not None
        assert token_variables(app.current_theme)["pgq-ok"] == DARK.variables["pgq-ok"]


def test_no_color_chooses_the_theme_that_can_do_without() -> None:
    assert default_theme({"NO_COLOR": ""}) == ANSI.name
    assert default_theme({"TERM": "xterm-256color"}) == DARK.name


async def test_an_unknown_theme_falls_back() -> None:
    app = Stage(Static("x"), theme="no such theme")
    async with app.run_test():
        assert app.theme in {DARK.name, ANSI.name}


async def test_without_colour_nothing_on_the_screen_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    chart, table = TimeChart("Throughput"), RowTable([TableColumn("a", "A", 4)])
    app = Stage(chart, table)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.theme == ANSI.name
        assert not palette_of(app).has_colour

        for strip in app.screen._compositor.render_strips(app.size):
            for segment in strip:
                assert segment.style is None or segment.style.color is None or segment.style.color.is_default


async def test_a_change_of_theme_repaints_in_the_new_colours() -> None:
    chart = TimeChart("Throughput")
    app = Stage(chart)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.theme = LIGHT.name
        await settle(pilot)

        assert chart.palette.style(Token.OK).color == palette_of(app).style(Token.OK).color
        assert not palette_of(app).is_dark


async def test_themes_can_be_installed_twice() -> None:
    app = Stage(Static("x"))
    async with app.run_test():
        install_themes(app, LIGHT.name)

        assert app.theme == LIGHT.name
