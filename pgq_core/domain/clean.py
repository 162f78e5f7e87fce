"""Text from jobs, errors and names, made safe for a terminal: it is shown as it is and can do nothing."""

from __future__ import annotations

import unicodedata

_SIGNS_START = 0x2400
_C0_END = 0x20
_NEWLINE_SIGN = "⏎"
_LAST_OF_TWO_DIGITS = 0xFF
_LAST_OF_FOUR_DIGITS = 0xFFFF


def clean(text: str, *, multiline: bool = False) -> str:
    r"""Everything a terminal would act on becomes a visible sign; line ends stay only when `multiline`.

    >>> clean("\x1b[2Jboo\x07 [red]"), clean("a\nb"), clean("a\nb", multiline=True)
    ('␛[2Jboo␇ [red]', 'a⏎b', 'a\nb')
    >>> clean("abc\u202efdp.exe \x9b31m \ud800")
    'abc\\u202efdp.exe \\x9b31m \\ud800'
    """
    if text.isascii() and text.isprintable():
        return text
    newline = "\n" if multiline else _NEWLINE_SIGN
    return "".join(_shown(character, newline) for character in text.replace("\r\n", "\n"))


def _shown(character: str, newline: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if character == "\n":
        return newline
    if character == "\t":
        return " "
    if code < _C0_END:
        return chr(_SIGNS_START + code)
    if unicodedata.category(character) == "Zs":
        return " "
    # What is left reorders, hides or controls: bidi marks, zero-width signs, C1, surrogates, unassigned.
    if code <= _LAST_OF_TWO_DIGITS:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"
