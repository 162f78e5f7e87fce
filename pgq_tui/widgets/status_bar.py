"""The four bars around every screen: header, tabs, status line, key hints."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.message import Message

from pgq_tui.view_model.chrome import (
    ContextClass,
    Counter,
    HeaderView,
    KeyHint,
    Link,
    StatusView,
    Tab,
    TabsView,
)
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.view_model.times import format_clock, format_duration, format_span
from pgq_tui.widgets.bar import Bar, Part

_FIRST, _SOON, _LATE, _LAST = 0, 10, 50, 90


class HeaderBar(Bar):
    """Where we are connected, whether we may write, and the numbers that matter everywhere."""

    DEFAULT_CSS = """
    HeaderBar { background: $panel; &.-protected { background: $error 22%; } }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._view = HeaderView(context="", database="")

    def show(self, view: HeaderView) -> None:
        """Show this; the same again is not painted."""
        if view != self._view:
            self._view = view
            self.set_class(view.context_class is ContextClass.PROTECTED, "-protected")
            self.refresh()

    def left_parts(self) -> list[Part]:
        """Context, rights, database, counters; the database name goes first when there is no room."""
        view, palette, glyphs = self._view, self.palette, self.glyphs
        is_protected = view.context_class is ContextClass.PROTECTED
        name = Text().append("pgq", palette.style(Token.KEY))
        context = one_line(view.context, 16, glyphs=glyphs)
        if context:
            name.append(f" {context.upper() if is_protected else context}", palette.style(self._context_token()))
        rights = Text("[ro]" if view.is_read_only else "[rw]", palette.style(Token.DIM))
        parts = [Part(name, _FIRST), Part(rights, _SOON)]
        if view.database:
            parts.append(Part(Text(one_line(view.database, 40, glyphs=glyphs), palette.style(Token.DIM)), _LATE))
        return [*parts, *(Part(self._counter(counter), _SOON + counter.rank) for counter in view.counters)]

    def right_parts(self) -> list[Part]:
        """Connection, refresh rate and clock."""
        view, palette = self._view, self.palette
        parts = [Part(self._ping(), _SOON + 1)]
        if view.refresh_seconds:
            parts.append(Part(Text(f"{view.refresh_seconds:g}s", palette.style(Token.DIM)), _LAST))
        if view.now:
            parts.append(Part(Text(format_clock(view.now, view.zone), palette.style(Token.TEXT)), _SOON + 4))
        return parts

    def _context_token(self) -> Token:
        return Token.PROTECTED if self._view.context_class is ContextClass.PROTECTED else Token.TEXT

    def _ping(self) -> Text:
        view, glyphs = self._view, self.glyphs
        if not view.is_connected:
            return Text(f"{glyphs.icons['dead']} no database", self.palette.style(Token.DEAD))
        ping = "" if view.ping_seconds is None else format_duration(view.ping_seconds)
        return Text(f"{glyphs.icons['ok']} {ping}".rstrip(), self.palette.style(Token.OK))

    def _counter(self, counter: Counter) -> Text:
        glyphs = self.glyphs
        text = Text(no_wrap=True)
        words = f"{counter.icon} {one_line(counter.label, 16, glyphs=glyphs)}".strip()
        text.append(words, self.palette.style(Token.DIM))
        return text.append(f" {one_line(counter.value, 24, glyphs=glyphs)}", self.palette.style(counter.token))


class TabStrip(Bar):
    """The numbered screens; a click opens one."""

    GAP = 0

    class TabClicked(Message):
        """The operator clicked on a screen's name."""

        def __init__(self, strip: TabStrip, tab_id: str) -> None:
            super().__init__()
            self.strip = strip
            self.tab_id = tab_id

        @property
        def control(self) -> TabStrip:
            """The strip it happened in."""
            return self.strip

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._view = TabsView((), "")

    def show(self, view: TabsView) -> None:
        """Show this; the same again is not painted."""
        if view != self._view:
            self._view = view
            self.refresh()

    def left_parts(self) -> list[Part]:
        """The active screen is kept longest, then those with an alert."""
        roomy = [self._tab(tab, " ") for tab in self._view.tabs]
        is_tight = sum(text.cell_len + self.GAP for text in roomy) > self.size.width - 2
        texts = [self._tab(tab, "") for tab in self._view.tabs] if is_tight else roomy
        return [Part(text, self._rank(tab), tab.id) for text, tab in zip(texts, self._view.tabs, strict=True)]

    def right_parts(self) -> list[Part]:
        """Where in the screen we are."""
        crumb = one_line(self._view.crumb, 60, glyphs=self.glyphs)
        return [Part(Text(crumb, self.palette.style(Token.DIM)), _LAST)] if crumb else []

    def part_clicked(self, click: str) -> None:
        """Ask for the screen."""
        self.post_message(self.TabClicked(self, click))

    def _rank(self, tab: Tab) -> int:
        return _FIRST if tab.id == self._view.active else _SOON if tab.alert else _SOON + tab.number

    def _tab(self, tab: Tab, gap: str) -> Text:
        palette = self.palette
        is_active = tab.id == self._view.active
        text = Text(no_wrap=True)
        number = palette.style(Token.ACCENT if is_active else Token.DIM)
        label = palette.style(Token.TEXT) + Style(bold=True) if is_active else palette.style(Token.DIM)
        open_sign, close_sign = ("[", "]") if is_active else (" ", " ")
        text.append(open_sign, palette.style(Token.ACCENT)).append(f"{tab.number}{gap}", number)
        text.append(one_line(tab.label, 12, glyphs=self.glyphs), label)
        if tab.alert:
            text.append(f"{gap}{one_line(tab.alert, 6, glyphs=self.glyphs)}", palette.style(tab.token))
        return text.append(close_sign, palette.style(Token.ACCENT))


class StatusLine(Bar):
    """Whether the picture is live, how old it is when it is not, and what happened last."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._view = StatusView(Link.LOADING)

    def show(self, view: StatusView) -> None:
        """Show this; the same again is not painted."""
        if view != self._view:
            self._view = view
            self.refresh()

    def left_parts(self) -> list[Part]:
        """State and last message."""
        view, palette = self._view, self.palette
        parts = [Part(self._state(), _FIRST)]
        if view.message:
            message = one_line(view.message, max(self.size.width - parts[0].text.cell_len - 4, 8), glyphs=self.glyphs)
            parts.append(Part(Text(message, palette.style(view.message_token)), _SOON))
        if view.detail:
            detail = one_line(view.detail, 120, glyphs=self.glyphs)
            parts.insert(1, Part(Text(detail, palette.style(Token.DIM)), _LATE))
        return parts

    def right_parts(self) -> list[Part]:
        """Standing remarks of the screen."""
        right = one_line(self._view.right, 60, glyphs=self.glyphs)
        return [Part(Text(right, self.palette.style(Token.DIM)), _LAST)] if right else []

    def _state(self) -> Text:
        view, icons = self._view, self.glyphs.icons
        age = "" if view.age_seconds is None else f" {format_span(view.age_seconds)}"
        words, token = {
            Link.LOADING: (f"{icons['later']} loading{age}", Token.SCHEDULED),
            Link.LIVE: (f"{icons['ok']} live", Token.OK),
            Link.STALE: (f"{icons['warn']} data{age} old", Token.RETRY),
            Link.FROZEN: (f"{icons['paused']} frozen{age}", Token.PAUSED),
            Link.LOST: (f"{icons['dead']} database lost{age}", Token.DEAD),
        }[view.link]
        return Text(words, self.palette.style(token), no_wrap=True)


class KeyHints(Bar):
    """The keys of the moment, the most valuable ones first; those without room are left out."""

    class HintClicked(Message):
        """The operator clicked on a hint instead of pressing its key."""

        def __init__(self, hints: KeyHints, action: str) -> None:
            super().__init__()
            self.hints = hints
            self.action = action

        @property
        def control(self) -> KeyHints:
            """The bar it happened in."""
            return self.hints

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._hints: tuple[KeyHint, ...] = ()

    def show(self, hints: tuple[KeyHint, ...]) -> None:
        """Show these; the same again are not painted."""
        if hints != self._hints:
            self._hints = hints
            self.refresh()

    def left_parts(self) -> list[Part]:
        """In order of value, so that a narrow screen keeps the best."""
        ordered = sorted(self._hints, key=lambda hint: -hint.value)
        return [Part(self._hint(hint), rank, hint.action) for rank, hint in enumerate(ordered)]

    def part_clicked(self, click: str) -> None:
        """Ask for the action of the hint."""
        self.post_message(self.HintClicked(self, click))

    def _hint(self, hint: KeyHint) -> Text:
        palette, glyphs = self.palette, self.glyphs
        key = palette.style(Token.KEY if hint.is_enabled else Token.FAINT)
        label = palette.style(Token.DIM if hint.is_enabled else Token.FAINT)
        text = Text().append(one_line(hint.keys, 12, glyphs=glyphs), key)
        return text.append(f" {one_line(hint.label, 24, glyphs=glyphs)}", label)
