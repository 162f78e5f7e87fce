"""What needs attention, as rows."""

from __future__ import annotations

from pgq_tui.view_model.attention import Attention, Severity
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell

ATTENTION_COLUMNS = (
    TableColumn("icon", "", 1),
    TableColumn("text", "", 20, flex=1),
)
_TOKENS = {Severity.CRITICAL: Token.FAILED, Severity.WARNING: Token.RETRY, Severity.NOTICE: Token.DIM}
_WORDS = {Severity.CRITICAL: "failed", Severity.WARNING: "warn", Severity.NOTICE: "ready"}


def attention_row(found: Attention, palette: Palette, *, glyphs: Glyphs = UNICODE) -> TableRow:
    """One finding: what it is about in the colour of its weight, then what is the matter.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> found = Attention("k", Severity.WARNING, "billing", "paused 9m by ada", "queues", "billing")
    >>> [cell.plain for cell in attention_row(found, PLAIN).cells]
    ['!', 'billing paused 9m by ada']
    """
    token = palette.style(_TOKENS[found.severity])
    text = cell(found.subject, token, width=60, glyphs=glyphs)
    text.append_text(cell(f" {found.text}", palette.style(Token.TEXT), glyphs=glyphs))
    return TableRow(found.key, (cell(glyphs.icons[_WORDS[found.severity]], token, glyphs=glyphs), text))
