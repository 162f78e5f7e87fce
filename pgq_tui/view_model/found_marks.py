"""What a search found, marked in a line."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text


def mark_found(text: Text, needle: str, style: Style) -> None:
    """Put the style on every place of the needle, whatever the case.

    >>> text = Text("Needle, needle")
    >>> mark_found(text, "NEEDLE", Style(bold=True))
    >>> [(span.start, span.end) for span in text.spans]
    [(0, 6), (8, 14)]
    """
    folded, plain = needle.casefold(), text.plain.casefold()
    if not folded or len(plain) != len(text.plain):
        return  # Folding changed the length, so that places in one are no places in the other.
    at = plain.find(folded)
    while at != -1:
        text.stylize(style, at, at + len(folded))
        at = plain.find(folded, at + len(folded))
