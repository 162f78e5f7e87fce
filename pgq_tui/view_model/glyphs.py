"""The signs the console draws with: one set for Unicode terminals, one for those that only know ASCII."""

from __future__ import annotations

import codecs
import locale
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

IconChoice = Literal["auto", "unicode", "ascii"]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One complete set of signs; every drawing function takes one and uses no other sign."""

    name: str
    is_ascii: bool
    icons: Mapping[str, str]
    ellipsis: str
    newline: str
    missing: str
    separator: str
    bar_full: str
    bar_empty: str
    levels: str
    """Eight heights of a sparkline cell, lowest first."""
    up: str
    down: str


UNICODE = Glyphs(
    name="unicode",
    is_ascii=False,
    icons=MappingProxyType(
        {
            "ok": "✓",
            "run": "▸",
            "ready": "∙",
            "later": "◷",
            "retry": "↻",
            "failed": "✗",
            "dead": "✘",
            "stopped": "⊘",
            "paused": "‖",
            "warn": "!",
            "marked": "●",
        }
    ),
    ellipsis="…",
    newline="⏎",
    missing="–",
    separator="·",
    bar_full="█",
    bar_empty="░",
    levels="▁▂▃▄▅▆▇█",
    up="▲",
    down="▼",
)

ASCII = Glyphs(
    name="ascii",
    is_ascii=True,
    icons=MappingProxyType(
        {
            "ok": "+",
            "run": ">",
            "ready": ".",
            "later": "@",
            "retry": "~",
            "failed": "x",
            "dead": "X",
            "stopped": "-",
            "paused": "=",
            "warn": "!",
            "marked": "*",
        }
    ),
    ellipsis="~",
    newline="|",
    missing="-",
    separator="|",
    bar_full="#",
    bar_empty=".",
    levels="_.-:=+*#",
    up="^",
    down="v",
)


def pick_glyphs(choice: IconChoice = "auto", encoding: str | None = None) -> Glyphs:
    """The set for a terminal of this encoding; without one, the encoding of the locale decides.

    >>> pick_glyphs("auto", "UTF-8").name, pick_glyphs("auto", "latin-1").name, pick_glyphs("auto", "no such").name
    ('unicode', 'ascii', 'ascii')
    >>> pick_glyphs("ascii", "utf-8").name
    'ascii'
    """
    if choice == "auto":
        return UNICODE if _is_utf8(encoding or locale.getencoding()) else ASCII
    return UNICODE if choice == "unicode" else ASCII


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False
