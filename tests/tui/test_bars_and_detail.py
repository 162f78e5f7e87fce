"""The bars clip by value and never wrap; the detail pane folds, keeps its place and copies everything."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pgq_tui.view_model import (
    ContextClass,
    Counter,
    Detail,
    Fact,
    HeaderView,
    JsonSection,
    KeyHint,
    Link,
    StatusView,
    Tab,
    TabsView,
    TextSection,
    Token,
    TracebackSection,
)
from pgq_tui.widgets import DetailPane, HeaderBar, KeyHints, StatusLine, TabStrip
from tests.tui.stage import SIZES, Stage, screen_lines, screen_text, settle

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)
HEADER = HeaderView(
    context="demo",
    database="app@db-1/jobs",
    ping_seconds=0.003,
    counters=(
        Counter("wait", "1,204", rank=1),
        Counter("run", "36/64", Token.RUNNING, rank=2),
        Counter("dead", "1,041", Token.DEAD, "✘", rank=3),
    ),
    refresh_seconds=2,
    now=NOW,
)
NAMES = ["Dash", "Queues", "Jobs", "Runs", "Dead", "Workers", "Sched", "DB", "Ops"]
TABS = TabsView(
    tuple(Tab(name.lower(), n + 1, name, "!" if name == "Dead" else "") for n, name in enumerate(NAMES)), "runs"
)
HINTS = tuple(KeyHint(chr(97 + n), f"label{n:02d}", f"action{n}", value=-n) for n in range(26))


class Clicked(Stage):
    def on_tab_strip_tab_clicked(self, message: TabStrip.TabClicked) -> None:
        self.messages.append(message.tab_id)

    def on_key_hints_hint_clicked(self, message: KeyHints.HintClicked) -> None:
        self.messages.append(message.action)


@pytest.mark.parametrize("size", SIZES)
async def test_the_header_shows_what_matters_and_the_clock(size: tuple[int, int]) -> None:
    header = HeaderBar()
    async with Stage(header).run_test(size=size) as pilot:
        header.show(HEADER)
        await settle(pilot)
        line = screen_lines(pilot.app)[0]

        assert "pgq demo" in line
        for part in ("[rw]", "wait 1,204", "run 36/64", "✘ dead 1,041", "12:04:31", "3ms"):
            assert part in line
        assert ("app@db-1/jobs" in line) == (size[0] > 100)


@pytest.mark.parametrize("width", [1, 2, 5, 10, 20, 40, 60])
async def test_narrow_bars_keep_the_most_valuable_parts(width: int) -> None:
    header, tabs, status, hints = HeaderBar(), TabStrip(), StatusLine(), KeyHints()
    async with Stage(header, tabs, status, hints).run_test(size=(width, 8)) as pilot:
        header.show(HEADER)
        tabs.show(TABS)
        status.show(StatusView(Link.LOST, 12, "connection refused [/x]", "paused [/x]"))
        hints.show(HINTS)
        await settle(pilot)

        lines = screen_lines(pilot.app)
        assert all(len(line) == width for line in lines)
        if width >= 20:
            assert "4" in lines[1]
            assert "database lost" in lines[2]
            assert "label00" in lines[3]


async def test_all_nine_screens_fit_into_eighty_columns() -> None:
    tabs = TabStrip()
    async with Stage(tabs).run_test(size=(80, 24)) as pilot:
        tabs.show(TABS)
        await settle(pilot)

        assert all(name in screen_lines(pilot.app)[0] for name in NAMES)
        assert "Runs]" in screen_lines(pilot.app)[0]


async def test_hints_are_clipped_by_value_and_can_be_clicked() -> None:
    hints = KeyHints()
    app = Clicked(hints)
    async with app.run_test(size=(80, 24)) as pilot:
        hints.show(HINTS)
        await settle(pilot)
        line = screen_lines(app)[0]
        shown = [n for n in range(26) if f"label{n:02d}" in line]
        assert shown == list(range(len(shown)))
        assert len(shown) >= 6

        await pilot.click(KeyHints, offset=(line.index("label02"), 0))
        await settle(pilot, until=lambda: bool(app.messages))
        assert app.messages == ["action2"]


async def test_a_click_on_a_tab_asks_for_its_screen() -> None:
    tabs = TabStrip()
    app = Clicked(tabs)
    async with app.run_test(size=(160, 24)) as pilot:
        tabs.show(TABS)
        await settle(pilot)
        await pilot.click(TabStrip, offset=(screen_lines(app)[0].index("Workers") + 2, 0))
        await settle(pilot, until=lambda: bool(app.messages))

        assert app.messages == ["workers"]


async def test_a_protected_context_says_so_in_letters() -> None:
    header = HeaderBar()
    async with Stage(header).run_test(size=(80, 24)) as pilot:
        header.show(HeaderView("prod", "a@b/c", is_read_only=True, context_class=ContextClass.PROTECTED))
        await settle(pilot)

        assert "PROD" in screen_lines(pilot.app)[0]
        assert "[ro]" in screen_lines(pilot.app)[0]


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (StatusView(Link.LIVE), "✓ live"),
        (StatusView(Link.LOADING, 1.2), "loading 1s"),
        (StatusView(Link.LOST, 12), "database lost 12s"),
        (StatusView(Link.STALE, 130), "data 2m10s old"),
        (StatusView(Link.FROZEN, 5), "frozen 5s"),
        (StatusView(Link.LIVE, message="replayed [/x]"), "replayed [/x]"),
    ],
)
async def test_the_status_line_says_how_old_the_picture_is(view: StatusView, words: str) -> None:
    status = StatusLine()
    async with Stage(status).run_test(size=(80, 24)) as pilot:
        status.show(view)
        await settle(pilot)

        assert words in screen_lines(pilot.app)[0]


TRACEBACK = """Traceback (most recent call last):
  File "/srv/app/jobs/send_email.py", line 31, in run
    smtp.connect(host)
  File "/usr/lib/python3.11/smtplib.py", line 341, in connect
    (code, msg) = self.getreply()
  File "/usr/lib/python3.11/smtplib.py", line 405, in getreply
    raise SMTPServerDisconnected("x")
smtplib.SMTPServerDisconnected: Connection [/x] closed"""
DEAD = Detail(
    "88 120 30 [/x]",
    (Fact("state", "dead", Token.DEAD), Fact("worker", "w-02 [red]")),
    (
        TextSection("error", "closed [/x]"),
        TracebackSection("trace", TRACEBACK),
        JsonSection("payload", {"to": "[b]a[/b]"}),
    ),
)


@pytest.mark.parametrize("size", SIZES)
async def test_a_detail_shows_facts_error_trace_and_payload(size: tuple[int, int]) -> None:
    pane = DetailPane()
    async with Stage(pane).run_test(size=size) as pilot:
        pane.show(DEAD)
        await settle(pilot)
        shown = screen_text(pilot.app)

        parts = ("88 120 30 [/x]", "state   dead", "w-02 [red]", "closed [/x]", "jobs/send_email.py:31 in run")
        for part in (*parts, "2 library frames folded", '"to": "[b]a[/b]"'):
            assert part in shown


async def test_library_frames_unfold_and_fold() -> None:
    pane = DetailPane()
    async with Stage(pane).run_test(size=(80, 40)) as pilot:
        pane.show(DEAD)
        pane.focus()
        await pilot.press("o")
        await settle(pilot)
        assert "python3.11/smtplib.py:405" in screen_text(pilot.app)
        await pilot.press("o")
        await settle(pilot)
        assert "smtplib.py:405" not in screen_text(pilot.app)


async def test_a_refresh_of_the_same_row_keeps_the_place() -> None:
    pane = DetailPane()

    def detail(title: str, tick: int) -> Detail:
        lines = "\n".join(f"line {number}" for number in range(200))
        return Detail(title, (Fact("age", f"{tick}s"),), (TextSection("log", lines),))

    async with Stage(pane).run_test(size=(80, 24)) as pilot:
        pane.show(detail("job 7", 1))
        pane.focus()
        await pilot.press("pagedown", "j")
        await settle(pilot)
        place = pane.scroll_offset.y
        assert place > 10

        pane.show(detail("job 7", 2))
        await settle(pilot)
        assert pane.scroll_offset.y == place

        pane.show(detail("job 8", 2))
        await settle(pilot)
        assert pane.scroll_offset.y == 0


async def test_the_copy_of_a_detail_is_complete() -> None:
    pane = DetailPane()
    async with Stage(pane).run_test(size=(40, 10)) as pilot:
        pane.show(DEAD)
        await settle(pilot)

        assert "smtplib.py" in pane.copy_text
        assert '"to": "[b]a[/b]"' in pane.copy_text


async def test_an_empty_pane_says_so() -> None:
    pane = DetailPane(empty="choose a dead letter [/x]")
    async with Stage(pane).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "choose a dead letter [/x]" in screen_text(pilot.app)

        pane.show(DEAD)
        pane.show(None)
        await settle(pilot)
        assert "choose a dead letter [/x]" in screen_text(pilot.app)
