"""Text as segments for widgets that draw their own lines."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text


def text_segments(text: Text, console: Console) -> Iterable[Segment]:
    """The pieces of a single line; `Text.render` alone forgets the style of the whole when there are no spans."""
    base = console.get_style(text.style, default=_NO_STYLE)
    for piece, style, _ in text.render(console):
        if piece and piece != "\n":
            yield Segment(piece, style or base)


_NO_STYLE = Style()
