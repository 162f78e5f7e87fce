"""Styled text in lines of a given width, without a console: a pure function of text and width."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, get_character_cell_size
from rich.text import Text


def wrap_text(text: Text, width: int) -> list[Text]:
    r"""The text cut into lines of at most `width` cells, at spaces where there are some; styles stay.

    >>> [line.plain for line in wrap_text(Text("Connection unexpectedly closed\nby peer"), 12)]
    ['Connection ', 'unexpectedly', 'closed', 'by peer']
    >>> [line.plain for line in wrap_text(Text("漢字漢字"), 5)], [line.plain for line in wrap_text(Text(""), 5)]
    (['漢字', '漢字'], [''])
    >>> [line.plain for line in wrap_text(Text("字 字"), 2)]
    ['字', '字']
    """
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        lines.extend(_wrap_line(line, max(width, 1)))
    return lines


def _wrap_line(line: Text, width: int) -> Iterable[Text]:
    if cell_len(line.plain) <= width:
        return [line]
    pieces = line.divide(_break_offsets(line.plain, width))
    for piece in pieces:
        # Counted in cells: Rich's own rstrip_end counts letters, and wide ones take two.
        while cell_len(piece.plain) > width and piece.plain[-1:].isspace():
            piece.right_crop(1)
    return pieces


def _break_offsets(text: str, width: int) -> list[int]:
    """Where new lines start: after the last space that fits, else wherever the line is full."""
    offsets: list[int] = []
    start = used = 0
    last_space = 0
    for index, character in enumerate(text):
        size = get_character_cell_size(character)
        # A blank at the end of a line hangs over and is dropped, so that no line starts with it.
        if used + size > width and index > start and character != " ":
            start = last_space if last_space > start else index
            offsets.append(start)
            used = cell_len(text[start:index])
        used += size
        if character == " ":
            last_space = index + 1
    return offsets
