"""The upper line of a tail: what it shows, what is looked for, and whether it runs."""

from __future__ import annotations

from rich.text import Text

from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import one_line


def tail_title(title: str, *, filter_words: str, needle: str, hits: int, palette: Palette, glyphs: Glyphs) -> Text:
    """The left end: the name, the filter, the search and how many lines it finds.

    >>> from pgq_tui.view_model.glyphs import UNICODE
    >>> from pgq_tui.view_model.palette import PLAIN
    >>> tail_title("Runs", filter_words="", needle="dead", hits=3, palette=PLAIN, glyphs=UNICODE).plain
    'Runs / dead (3 hits)'
    """
    left = Text().append(one_line(title, 40, glyphs=glyphs), palette.style(Token.TEXT))
    for sign, words in (("&", filter_words), ("/", needle)):
        if words:
            left.append(f" {sign} {one_line(words, 30, glyphs=glyphs)}", palette.style(Token.ACCENT))
    if needle:
        left.append(f" ({plural(hits, 'hit')})", palette.style(Token.DIM))
    return left


def tail_state(*, follow: bool, unseen: int, palette: Palette, glyphs: Glyphs) -> Text:
    """The right end: whether it follows, and else how many lines came since.

    >>> from pgq_tui.view_model.glyphs import UNICODE
    >>> from pgq_tui.view_model.palette import PLAIN
    >>> tail_state(follow=False, unseen=7, palette=PLAIN, glyphs=UNICODE).plain
    '‖ paused · +7 new G end'
    """
    if follow:
        return Text().append(f"{glyphs.down} follow", palette.style(Token.OK))
    state = Text().append(f"{glyphs.icons['paused']} paused", palette.style(Token.RETRY))
    if unseen:
        state.append(f" {glyphs.separator} +{unseen:,} new", palette.style(Token.TEXT))
    return state.append(" G end", palette.style(Token.DIM))
