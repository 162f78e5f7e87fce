"""Text from jobs, errors and logs, made safe for a terminal: it is shown as it is and can do nothing.

Nothing here parses markup, nothing raises, and the work for one cell depends on the width of the cell, not on
the length of the text.
"""

from __future__ import annotations

import unicodedata

from rich.cells import get_character_cell_size
from rich.style import Style
from rich.text import Text

from pgq_tui.view_model.glyphs import UNICODE, Glyphs

TAB_SIZE = 4
MAX_MARKS = 3
"""Combining marks kept on one letter; more would climb out of the cell in some terminals."""
MAX_CELL = 500
"""Cells kept of a text whose column has no width of its own."""

_SIGNS_START = 0x2400
_C0_END = 0x20
_DELETE = 0x7F
_SPACE_OUT = 4
_SLACK = 64

# Written out, because they reorder what stands beside them: a reader must see that somebody put them there.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Dropped, because terminals disagree about the width of what they join: without them every cell has one width.
_JOINERS = frozenset("\u200d\ufe0e\ufe0f") | frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_LINE_ENDS = frozenset("\n\u2028\u2029")
_ASCII_TWINS = str.maketrans({"–": "-", "∞": "oo", "·": "|", "…": "~", "→": "->", "←": "<-", "≥": ">=", "×": "x"})


def clean_text(text: str, *, multiline: bool = False, glyphs: Glyphs = UNICODE) -> str:
    r"""Everything a terminal would act on becomes a visible sign or goes; line ends stay only when `multiline`.

    >>> clean_text("\x1b[2Jboo\x07 [red]x[/] \\[")
    '␛[2Jboo␇ [red]x[/] \\['
    >>> clean_text("a\r\nb\tc\rd"), clean_text("a\nb", multiline=True)
    ('a⏎b c␍d', 'a\nb')
    >>> clean_text("abc\u202efdp.exe \x9b31m \ud800 zero\u200bwidth")
    'abc\\u202efdp.exe \\x9b31m \\ud800 zerowidth'
    """
    if text.isascii() and text.isprintable():
        return text
    cleaned = "".join(_clean_characters(text.replace("\r\n", "\n"), "\n" if multiline else glyphs.newline, glyphs))
    return _ascii(cleaned) if glyphs.is_ascii else cleaned


def _ascii(text: str) -> str:
    """The text for a terminal that knows no other signs: our own get their twin, all else a question mark."""
    return text.translate(_ASCII_TWINS).encode("ascii", "replace").decode()


def _clean_characters(text: str, newline: str, glyphs: Glyphs) -> list[str]:
    """The safe pieces of the text; tab stops count from the start of each line."""
    pieces: list[str] = []
    column = marks = 0
    for character in text:
        width = get_character_cell_size(character)
        if character in _LINE_ENDS:
            pieces.append(newline)
            column, marks = (0 if newline == "\n" else column + 1), 0
            continue
        if character == "\t":
            piece = " " * (TAB_SIZE - column % TAB_SIZE)
        elif width == 0 and unicodedata.category(character).startswith("M"):
            piece = _combining(character, marks, at_start=column == 0)
            marks += 1
        else:
            piece = character if width and character.isprintable() else _visible(character, glyphs)
            marks = 0
        pieces.append(piece)
        column += width if piece == character else len(piece)
    return pieces


def _combining(mark: str, marks: int, *, at_start: bool) -> str:
    """A mark on its letter, at most a few; one without a letter gets a circle, or it would sit on the border."""
    if at_start and marks == 0:
        return "◌" + mark
    return mark if marks < MAX_MARKS else ""


def _visible(character: str, glyphs: Glyphs) -> str:
    """What stands for a character that must not reach the terminal; empty when it has nothing to show."""
    code = ord(character)
    if code < _C0_END:
        return f"^{chr(code + 0x40)}" if glyphs.is_ascii else chr(_SIGNS_START + code)
    if code == _DELETE:
        return "^?" if glyphs.is_ascii else "␡"
    category = unicodedata.category(character)
    if category in {"Cc", "Cs"} or character in _BIDI:
        return f"\\x{code:02x}" if category == "Cc" else f"\\u{code:04x}"
    if character in _JOINERS or category == "Cf" or get_character_cell_size(character) == 0:
        return ""
    return " " if category.startswith("Z") else character


def one_line(text: str, width: int, *, glyphs: Glyphs = UNICODE) -> str:
    r"""The text as one safe line of at most `width` cells, an ellipsis where something was cut.

    >>> one_line("KeyError: 'tax_id'\n  in run", 14)
    "KeyError: 'ta…"
    >>> one_line("漢字漢字", 5), one_line("x" * 1_000_000, 4), one_line("ab", 0)
    ('漢字…', 'xxx…', '')
    """
    if width <= 0:
        return ""
    # Far more than any text needs that fills the cells; what lies behind it is never looked at.
    reach = width * _SPACE_OUT + _SLACK
    cleaned = clean_text(text[:reach], glyphs=glyphs)
    return cut(cleaned, width, glyphs=glyphs, is_cut=len(text) > reach)


def cut(text: str, width: int, *, glyphs: Glyphs = UNICODE, is_cut: bool = False) -> str:
    """Clean text cut to `width` cells; `is_cut` says that something was left out already.

    >>> cut("queue", 5), cut("queues", 5), cut("queue", 6, is_cut=True)
    ('queue', 'queu…', 'queue…')
    """
    if not is_cut and (fits := _fit(text, width)) == len(text):
        return text[:fits]
    if width <= 0:
        return ""
    return text[: _fit(text, width - 1)] + glyphs.ellipsis


def _fit(text: str, width: int) -> int:
    """How many characters of the text fit into `width` cells, with the marks that belong to the last one."""
    if text.isascii():
        return min(len(text), max(width, 0))
    used = 0
    for index, character in enumerate(text):
        used += get_character_cell_size(character)
        if used > width:
            return index
    return len(text)


def cell(text: str, style: str | Style = "", *, width: int = MAX_CELL, glyphs: Glyphs = UNICODE) -> Text:
    """A table cell: always a `Text` of one safe line, so that nothing in it is read as markup.

    >>> cell("[red]x[/red] [@click=app.quit]z[/]").plain
    '[red]x[/red] [@click=app.quit]z[/]'
    """
    return Text(one_line(text, width, glyphs=glyphs), style, no_wrap=True, overflow="ellipsis", end="")


def safe_lines(text: str, *, limit: int = 200_000, glyphs: Glyphs = UNICODE) -> list[str]:
    r"""A longer text as safe lines, its first `limit` characters, with a note when there is more.

    >>> safe_lines("one\ntwo\x00")
    ['one', 'two␀']
    >>> safe_lines("abcdef", limit=4)
    ['abcd', '… 2 more characters']
    """
    lines = clean_text(text[:limit], multiline=True, glyphs=glyphs).split("\n")
    if len(text) > limit:
        lines.append(f"{glyphs.ellipsis} {len(text) - limit:,} more characters")
    return lines
