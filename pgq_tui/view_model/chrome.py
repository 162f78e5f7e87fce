"""What the bars around every screen say, as plain values: header, tabs, status line, key hints, help."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from rich.text import Text

from pgq_tui.view_model.palette import Token


class ContextClass(StrEnum):
    """How dangerous the database is to touch; a protected one is red and says so."""

    NORMAL = "normal"
    PROTECTED = "protected"


@dataclass(frozen=True, slots=True)
class Counter:
    """One number of the header, such as `✘dead 1,041`; the lowest `rank` survives the narrowest screen."""

    label: str
    value: str
    token: Token = Token.TEXT
    icon: str = ""
    rank: int = 1


@dataclass(frozen=True, slots=True)
class HeaderView:
    """The first line: where we are connected, as what, and the numbers that matter everywhere."""

    context: str
    database: str
    """`user@host/database`, without a password."""
    is_read_only: bool = False
    context_class: ContextClass = ContextClass.NORMAL
    ping_seconds: float | None = None
    is_connected: bool = True
    counters: tuple[Counter, ...] = ()
    refresh_seconds: float | None = None
    now: datetime | None = None
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Tab:
    """One numbered screen of the second line; `alert` is a short mark such as `!` or `1▸`."""

    id: str
    number: int
    label: str
    alert: str = ""
    token: Token = Token.RETRY


@dataclass(frozen=True, slots=True)
class TabsView:
    """The second line: all screens, which one is shown, and where in it we are."""

    tabs: tuple[Tab, ...]
    active: str
    crumb: str = ""


class Link(StrEnum):
    """Whether what is on the screen is what the database says."""

    LOADING = "loading"
    LIVE = "live"
    STALE = "stale"
    FROZEN = "frozen"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class StatusView:
    """The line above the hints: is the picture live, how old is it, what happened last."""

    link: Link
    age_seconds: float | None = None
    """Age of the picture; shown for everything that is not live."""
    detail: str = ""
    """Cost of a live picture, cause of a lost one."""
    message: str = ""
    message_token: Token = Token.TEXT
    right: str = ""


@dataclass(frozen=True, slots=True)
class KeyHint:
    """One key and what it does here; `value` decides which hints survive, the highest first."""

    keys: str
    label: str
    action: str = ""
    value: int = 0
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class HelpRow:
    """One line of the help; `action` runs when the row is chosen, an empty one is only read."""

    group: str
    keys: str
    label: str
    description: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer of a choice dialog, taken by its key."""

    id: str
    key: str
    label: str
    description: str = ""
    token: Token = Token.TEXT


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What an act will do, in numbers, before it is done."""

    title: str
    effect: str
    verb: str = "yes"
    items: tuple[Text | str, ...] = ()
    total: int = 0
    """How many items there are; the list is a sample when it is shorter."""
    note: str = ""
    context: str = ""
    """Named in the border when the database is a protected one."""
    challenge: str = ""
    """What has to be typed to confirm; empty for a plain `y`."""
    token: Token = Token.FAILED


def matches_help(row: HelpRow, search: str) -> bool:
    """Whether every word of the search is somewhere in the row.

    >>> row = HelpRow("ACT", "R", "replay", "send the marked dead letters back")
    >>> matches_help(row, "dead REPLAY"), matches_help(row, "replay pause"), matches_help(row, "")
    (True, False, True)
    """
    text = f"{row.group} {row.keys} {row.label} {row.description}".casefold()
    return all(word in text for word in search.casefold().split())
