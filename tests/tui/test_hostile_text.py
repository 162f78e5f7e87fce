"""The worst text through every widget: shown literally, nothing clickable, no control character on the screen."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from rich.text import Text
from textual.screen import Screen

from pgq_tui.view_model import (
    ASCII,
    UNICODE,
    ChartData,
    ChartMark,
    ChartSeries,
    Choice,
    Confirmation,
    Counter,
    Detail,
    Fact,
    Glyphs,
    HeaderView,
    HelpRow,
    JsonSection,
    KeyHint,
    Link,
    LogRecord,
    RawJson,
    StatusView,
    Tab,
    TableColumn,
    TableRow,
    TabsView,
    TextSection,
    Token,
    TracebackSection,
    cell,
    compact_json,
)
from pgq_tui.widgets import (
    ChoiceDialog,
    ConfirmDialog,
    DetailPane,
    HeaderBar,
    HelpOverlay,
    InputDialog,
    KeyHints,
    RowTable,
    StatusLine,
    TabStrip,
    TailView,
    TextDialog,
    TimeChart,
)
from tests.tui.stage import HOSTILE, SIZES, Stage, screen_lines, screen_text, settle

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)
LITERAL = [text for text in HOSTILE if text.isascii() and text.isprintable() and 0 < len(text) < 40]
PROFILES = [(SIZES[0], UNICODE), pytest.param(SIZES[1], UNICODE, marks=pytest.mark.slow), (SIZES[0], ASCII)]


def assert_harmless(app: Stage) -> None:
    """No control character on the screen, every line as wide as the terminal, and no part that runs an action."""
    for strip in app.screen._compositor.render_strips(app.size):
        assert [character for character in strip.text if unicodedata.category(character) in {"Cc", "Cs", "Cf"}] == []
        assert strip.cell_length == app.size.width
        assert not any(segment.style and ("@click" in segment.style.meta or segment.style.link) for segment in strip)


@pytest.mark.parametrize(("size", "glyphs"), PROFILES)
async def test_hostile_text_in_a_table(size: tuple[int, int], glyphs: Glyphs) -> None:
    columns = [
        TableColumn("a", "A [/x]", 12),
        TableColumn("b", "B", 20, flex=1),
        TableColumn("c", "C", 8, is_right=True),
    ]
    table = RowTable(columns, empty="[/]\x1b[2J")
    app = Stage(table, glyphs=glyphs)
    async with app.run_test(size=size) as pilot:
        table.set_title("[/]\x1b[2J", "[red]x[/] \u202e")
        table.set_footer("[@click=app.quit]z[/]")
        await settle(pilot)
        assert_harmless(app)
        cells = [
            (cell(text, glyphs=glyphs), cell(compact_json({"a": text[:5000]}, 60), glyphs=glyphs)) for text in HOSTILE
        ]
        table.show_rows(TableRow(text[:200], (a, b, a)) for text, (a, b) in zip(HOSTILE, cells, strict=True))
        for key in ["j", "space", "G", "g"]:
            await pilot.press(key)
        await settle(pilot)

        assert_harmless(app)
        assert "[@click=app.quit]z[/]" in screen_text(app)
        assert "[red]x" in screen_text(app)
        assert app.is_running


@pytest.mark.parametrize(("size", "glyphs"), PROFILES)
async def test_hostile_text_in_a_tail(size: tuple[int, int], glyphs: Glyphs) -> None:
    tail = TailView("[/] Runs \x1b[2J")
    app = Stage(tail, glyphs=glyphs)
    async with app.run_test(size=size) as pilot:
        tail.focus()
        for index, text in enumerate(HOSTILE):
            tail.extend([LogRecord(index, NOW, text[:50], text[:300], text)])
            tail.find(text[:60])
            tail.set_filter(text[:60])
            tail.set_filter("")
            tail.draw_rule(("rule", index), text[:100])
            tail.action_line_up()
            tail.action_sideways(1)
            tail.action_find(1)
            await pilot.pause()
            assert_harmless(app)
        tail.find("")
        for _ in HOSTILE:
            tail.action_sideways(-1)
        tail.action_last_line()
        tail.extend(LogRecord(("again", text), NOW, "ok", "w", text) for text in LITERAL)
        await settle(pilot)

        for text in LITERAL:
            assert text in screen_text(app)


def hostile_detail(text: str) -> Detail:
    return Detail(
        text,
        (Fact(text, text), Fact("state", text)),
        (
            TextSection(text, text[:20_000]),
            TracebackSection(text, text[:20_000]),
            JsonSection(text, {text[:500]: text}),
            JsonSection("raw", RawJson(text)),
        ),
    )


def hostile_chart(text: str) -> ChartData:
    step = timedelta(seconds=5)
    return ChartData(
        times=(NOW - step * 2, NOW - step),
        bucket=step,
        now=NOW,
        window=step * 2,
        series=(ChartSeries(text[:500], Token.OK, (1.0, 2.0)),),
        marks=(ChartMark(NOW - step, text),),
        empty=text[:500],
    )


async def test_hostile_text_in_a_detail_and_a_chart() -> None:
    pane, chart = DetailPane(empty=HOSTILE[2]), TimeChart(HOSTILE[0], note=HOSTILE[8])
    app = Stage(pane, chart)
    async with app.run_test(size=(80, 45)) as pilot:
        for text in HOSTILE:
            pane.show(hostile_detail(text))
            chart.set_note(text[:500])
            chart.show(hostile_chart(text))
            await pilot.pause()

            assert_harmless(app)
            assert text not in LITERAL or text in screen_text(app)
            assert pane.copy_text is not None


async def test_hostile_text_in_the_bars() -> None:
    header, tabs, status, hints = HeaderBar(), TabStrip(), StatusLine(), KeyHints()
    app = Stage(header, tabs, status, hints)
    async with app.run_test(size=(80, 24)) as pilot:
        for text in HOSTILE:
            header.show(HeaderView(text, text, counters=(Counter(text, text),), now=NOW))
            tabs.show(TabsView((Tab("a", 1, text, text), Tab("b", 2, "b")), "a", text))
            status.show(StatusView(Link.LOST, 3, text, text, Token.FAILED, text))
            hints.show((KeyHint(text, text, "x", 1), KeyHint("q", text, "y")))
            await pilot.pause()

            assert_harmless(app)
            assert all(line.strip() == "" for line in screen_lines(app)[4:])


IN_DIALOGS = [
    " ".join(text for text in HOSTILE if len(text) < 200),
    "\u0301mark first",
    "two\nlines\u2028three",
    "\x1b[2J",
    "",
]


@pytest.mark.parametrize("text", IN_DIALOGS, ids=["all", "mark", "lines", "escape", "empty"])
async def test_hostile_text_in_dialogs(text: str) -> None:
    rows = (HelpRow(text, text, text, text, "x"), HelpRow("b", "k", "l"))
    dialogs: list[Screen[object]] = [
        ConfirmDialog(Confirmation(text, text[:2_000], text, (text, Text("x")), 9, text[:2_000], text, text)),
        InputDialog(text, text[:2_000], value="[", placeholder=text, check=lambda _: text),
        ChoiceDialog(text, text[:2_000], (Choice("a", "a", text, text), Choice("b", "b", "b"))),
        HelpOverlay(rows, title=text),
        TextDialog(text, text),
    ]
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        for dialog in dialogs:
            await app.push_screen(dialog)
            await settle(pilot)
            assert_harmless(app)
            await pilot.press("escape")
            await settle(pilot)
            assert app.screen is not dialog


@pytest.mark.parametrize("typed", ["[", "[/", "*(", "\\", "%_'", "x" * 10_000, "👩‍👩‍👧‍👦", "שלום"])
async def test_whatever_is_typed_into_a_search_is_literal(typed: str) -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        overlay = HelpOverlay((HelpRow("a", "k", "l"),))
        await app.push_screen(overlay)
        await settle(pilot)
        overlay.query_one("Input").insert_text_at_cursor(typed)  # type: ignore[attr-defined]
        await settle(pilot)

        assert app.is_running
