"""How the inner loops of a worker or a supervisor do, in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from pgq_core.domain.health import LoopHealth
from pgq_tui.view_model.detail import Fact, StyledSection
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.times import format_span

_LONGEST_LINE = 400


def stalled_words(loop: LoopHealth) -> str:
    """One sentence about a loop that stands still.

    >>> stalled_words(LoopHealth("claim", 95.2, 30.0, "no answer"))
    'claim stands still for 1m35s: no answer'
    """
    words = f"{loop.name} stands still for {format_span(loop.age)}"
    return f"{words}: {loop.error}" if loop.error else words


def loops_fact(loops: Sequence[LoopHealth]) -> Fact:
    """All of them in one line."""
    stalled = sum(loop.is_stalled for loop in loops)
    if stalled:
        return Fact("inside", f"{stalled} of {len(loops)} loops stand still", Token.FAILED)
    return Fact("inside", f"{plural(len(loops), 'loop')} {'turns' if len(loops) == 1 else 'turn'}", Token.OK)


def loops_section(loops: Sequence[LoopHealth], palette: Palette, glyphs: Glyphs = UNICODE) -> StyledSection:
    """One line for each loop, those that stand still first."""
    ordered = sorted(loops, key=lambda loop: (not loop.is_stalled, loop.name))
    return StyledSection("loops and their last good turn", tuple(_line(loop, palette, glyphs) for loop in ordered))


def _line(loop: LoopHealth, palette: Palette, glyphs: Glyphs) -> Text:
    token = Token.FAILED if loop.is_stalled else Token.RETRY if loop.error else Token.OK
    icon = glyphs.icons["failed" if loop.is_stalled else "retry" if loop.error else "ok"]
    error = f"  {loop.error}" if loop.error else ""
    words = f"{icon} {loop.name:<12} {format_span(loop.age):>6} ago of {format_span(loop.limit)}{error}"
    return cell(words, palette.style(token), width=_LONGEST_LINE, glyphs=glyphs)
