"""The colours as meanings: what a screen asks for, and the styles one theme gives for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from rich.style import Style


class Token(StrEnum):
    """A meaning that has a colour of its own in every theme; the value is the name of the theme variable."""

    OK = "pgq-ok"
    RUNNING = "pgq-running"
    WAITING = "pgq-waiting"
    SCHEDULED = "pgq-scheduled"
    RETRY = "pgq-retry"
    FAILED = "pgq-failed"
    DEAD = "pgq-dead"
    PAUSED = "pgq-paused"
    LINK = "pgq-link"
    TEXT = "pgq-text"
    DIM = "pgq-dim"
    FAINT = "pgq-faint"
    ACCENT = "pgq-accent"
    PROTECTED = "pgq-protected"
    KEY = "pgq-key"


@dataclass(frozen=True, slots=True)
class Palette:
    """The style of each token in the theme that is on."""

    styles: Mapping[str, Style] = field(default_factory=lambda: MappingProxyType({}))
    is_dark: bool = True
    has_colour: bool = True

    def style(self, token: str) -> Style:
        """The style of a token; a token unknown to the theme has no colour, it never fails.

        >>> PLAIN.style("pgq-ok"), PLAIN.style("no such token")
        (Style(), Style())
        """
        return self.styles.get(token, _NO_STYLE)


_NO_STYLE = Style()
PLAIN = Palette(has_colour=False)
"""No colour at all: what is drawn with it must still be understood."""
