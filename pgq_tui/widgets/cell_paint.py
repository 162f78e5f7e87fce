"""One table cell as segments: text cut or filled up to exactly the width of its column."""

from __future__ import annotations

from functools import lru_cache

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.rows import GAP
from pgq_tui.view_model.safe_text import cut
from pgq_tui.widgets.segments import text_segments


def cell_segments(
    text: Text,
    width: int,
    style: Style,
    over: Style,
    *,
    is_right: bool,
    console: Console,
    glyphs: Glyphs,
    gap: int = GAP,
) -> list[Segment]:
    """The text on `style` and under `over`, numbers at the right, the gap to the next column at the end."""
    used = text.cell_len
    if used > width:
        text = _cut_text(text, width, glyphs)
        used = text.cell_len
    blank = " " * (width - used)
    before, after = (blank, "") if is_right else ("", blank)
    segments = [Segment(before, style + over)] if before else []
    segments += [Segment(piece, style + piece_style + over) for piece, piece_style, _ in text_segments(text, console)]
    return [*segments, Segment(after + " " * gap, style + over)]


@lru_cache(maxsize=4_096)
def place_meta(row: int, column: int) -> Style:
    """What a click on the cell tells the table: where it was."""
    return Style.from_meta({"row": row, "column": column})


def _cut_text(text: Text, width: int, glyphs: Glyphs) -> Text:
    plain = cut(text.plain, width, glyphs=glyphs)
    kept = text.divide([max(len(plain) - len(glyphs.ellipsis), 0)])[0]
    return kept.append(plain[len(kept.plain) :])
