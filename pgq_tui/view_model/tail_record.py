"""What a live tail needs to know of its lines: a key, words to search, and how each line looks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Protocol

from rich.text import Text

from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import PLAIN, Palette, Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.times import format_age, format_clock


class TimeFormat(StrEnum):
    """How a tail shows when its lines happened."""

    LOCAL = "local"
    UTC = "utc"
    RELATIVE = "relative"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class TailOptions:
    """What the operator chose for a tail; lines are drawn anew when it changes."""

    times: TimeFormat = TimeFormat.LOCAL
    zone: tzinfo | None = None
    now: datetime | None = None
    """Needed by relative times alone; left unset otherwise, so that lines stay as drawn."""
    palette: Palette = field(default=PLAIN, compare=False)
    theme: str = ""
    glyphs: Glyphs = field(default=UNICODE, compare=False)


class TailRecord(Protocol):
    """One line of a tail. Records are immutable; two with the same key are the same record."""

    @property
    def key(self) -> Hashable:
        """What the cursor holds on to."""

    @property
    def level(self) -> str:
        """Outcome or log level, for the level filter."""

    @property
    def search_text(self) -> str:
        """Everything a filter or a search should find, as raw text."""

    def render(self, width: int, options: TailOptions) -> Text:
        """The line as safe text; it may be longer than `width`, the tail scrolls sideways."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of a log: when, how bad, from where, and the text."""

    key: Hashable
    at: datetime | None
    level: str
    source: str
    text: str

    @property
    def search_text(self) -> str:
        """The source and the text, as the eye sees them."""
        return f"{self.source} {self.text}"

    def render(self, width: int, options: TailOptions) -> Text:  # noqa: ARG002 - the line may be longer than the window
        """Time, icon, source and text in their colours."""
        look = status_look(self.level, options.glyphs)
        palette = options.palette
        line = time_text(self.at, options)
        line.append(f"{look.icon} ", palette.style(look.token))
        if self.source:
            line.append(one_line(self.source, _SOURCE_WIDTH, glyphs=options.glyphs).ljust(_SOURCE_WIDTH + 1))
        is_loud = look.kind in {"failed", "dead", "warn"}
        style = palette.style(look.token if is_loud else Token.TEXT)
        return line.append(one_line(self.text, LONGEST_LINE, glyphs=options.glyphs), style)


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A line the operator drew across the tail to find the place again."""

    key: Hashable
    label: str
    level: str = "mark"

    @property
    def search_text(self) -> str:
        """The label."""
        return self.label

    def render(self, width: int, options: TailOptions) -> Text:
        """A rule over the whole width with its label."""
        dash = "-" if options.glyphs.is_ascii else "─"
        label = one_line(self.label, max(width - 6, 1), glyphs=options.glyphs)
        head = f"{dash * 2} {label} "
        return Text(head + dash * max(width - len(head), 0), options.palette.style(Token.ACCENT), no_wrap=True, end="")


LONGEST_LINE = 2_000
"""Cells of one line that can be scrolled to; the detail shows more."""
_SOURCE_WIDTH = 12


def time_text(at: datetime | None, options: TailOptions) -> Text:
    """The time column of a tail line, as wide in every line as its format needs; nothing when times are off.

    >>> from datetime import UTC
    >>> at = datetime(2026, 3, 1, 12, 4, 31, 204_000, tzinfo=UTC)
    >>> [time_text(at, TailOptions(times, now=at)).plain for times in TimeFormat]
    ['12:04:31.204 ', '12:04:31.204 ', '    now ', '']
    """
    line = Text(no_wrap=True, end="")
    match options.times:
        case TimeFormat.OFF:
            return line
        case TimeFormat.RELATIVE:
            age = (options.now - at).total_seconds() if options.now and at else None
            shown = format_age(age).rjust(7)
        case TimeFormat.UTC:
            shown = format_clock(at, UTC, milliseconds=True).rjust(12)
        case TimeFormat.LOCAL:
            shown = format_clock(at, options.zone, milliseconds=True).rjust(12)
    return line.append(f"{shown} ", options.palette.style(Token.DIM))
