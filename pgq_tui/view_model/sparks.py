"""Small pictures inside a line: sparklines and bars. Their base is always zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token


def sparkline(
    values: Sequence[float | None],
    *,
    width: int | None = None,
    top: float | None = None,
    glyphs: Glyphs = UNICODE,
) -> str:
    """One cell per value (or `width` cells), from zero to the largest value or `top`; a gap is a blank.

    Because it starts at zero, 100, 101, 100 is a flat line and not an outage.

    >>> sparkline([0, 1, 2, 4, 8]), sparkline([100, 101, 100]), sparkline([0, 0]), sparkline([3, None, 3])
    ('▁▂▃▅█', '███', '▁▁', '█ █')
    >>> sparkline([1, 1, 1, 3, 3, 3], width=2), sparkline([1, 2], width=4), sparkline([], width=3)
    ('▃█', '  ▅█', '   ')
    """
    known = [value if value is not None and math.isfinite(value) else None for value in values]
    shown = known if width is None else _resample(known, width)
    highest = top if top is not None else max((value for value in shown if value is not None), default=0.0)
    return "".join(_level(value, highest, glyphs) for value in shown)


def _level(value: float | None, top: float, glyphs: Glyphs) -> str:
    if value is None:
        return " "
    if value <= 0 or top <= 0:
        return glyphs.levels[0]
    highest = len(glyphs.levels) - 1
    return glyphs.levels[min(highest, round(value / top * highest))]


def _resample(values: Sequence[float | None], width: int) -> list[float | None]:
    """The values as `width` means of equal stretches; fewer values stand at the right, where now is."""
    count = len(values)
    if count <= width:
        return [None] * (width - count) + list(values)
    edges = [round(index * count / width) for index in range(width + 1)]
    return [_mean(values[start:end]) for start, end in pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def bar(share: float | None, width: int, *, glyphs: Glyphs = UNICODE) -> str:
    """A filled part of `width` cells; something is never shown as nothing, nor almost all as all.

    >>> bar(0.5, 6), bar(0, 4), bar(0.01, 4), bar(0.99, 4), bar(1, 4), bar(2.5, 4), bar(None, 2)
    ('███░░░', '░░░░', '█░░░', '███░', '████', '████', '░░')
    """
    filled = _filled_cells(share, width)
    return glyphs.bar_full * filled + glyphs.bar_empty * (width - filled)


def _filled_cells(share: float | None, width: int) -> int:
    if share is None or not share > 0 or width <= 0:
        return 0
    if share >= 1:
        return width
    return min(max(round(share * width), 1), max(width - 1, 1))


def bar_text(
    share: float | None, width: int, palette: Palette, *, token: str = Token.RUNNING, glyphs: Glyphs = UNICODE
) -> Text:
    """The bar in colour, its empty part faint.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> bar_text(0.25, 8, PLAIN).plain
    '██░░░░░░'
    """
    filled = _filled_cells(share, width)
    text = Text(glyphs.bar_full * filled, palette.style(token), no_wrap=True, end="")
    return text.append(glyphs.bar_empty * (width - filled), palette.style(Token.FAINT))
