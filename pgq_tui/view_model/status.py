"""How each state and outcome looks: icon, colour and word, never the colour alone."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import one_line


@dataclass(frozen=True, slots=True)
class StatusLook:
    """Kind of state, its sign, its colour and the word that stands beside it."""

    kind: str
    icon: str
    token: Token
    word: str


_TOKENS = {
    "ok": Token.OK,
    "run": Token.RUNNING,
    "ready": Token.WAITING,
    "later": Token.SCHEDULED,
    "retry": Token.RETRY,
    "failed": Token.FAILED,
    "dead": Token.DEAD,
    "stopped": Token.PAUSED,
    "paused": Token.PAUSED,
    "warn": Token.RETRY,
    "marked": Token.ACCENT,
}

_WORDS_BY_KIND = {
    "ok": "ok succeeded success completed live up healthy info",
    "run": "run running started starting",
    "ready": "ready pending waiting idle debug",
    "later": "later scheduled snoozed",
    "retry": "retry retried retrying replayed restarting",
    "failed": "failed fail lost timeout error",
    "dead": "dead crash_loop crashed critical",
    "stopped": "stopped cancelled discarded expired released draining drained quiet",
    "paused": "paused",
    "warn": "warn warning stale stalled suspect",
    "marked": "marked",
}
_KINDS = {word: kind for kind, words in _WORDS_BY_KIND.items() for word in words.split()}


def status_look(word: str, glyphs: Glyphs = UNICODE) -> StatusLook:
    """The look of a state or outcome; a word nobody knows looks neutral and keeps its word.

    >>> status_look("succeeded")
    StatusLook(kind='ok', icon='✓', token=<Token.OK: 'pgq-ok'>, word='succeeded')
    >>> status_look("crash_loop").icon, status_look("LOST").icon, status_look("brand new").icon
    ('✘', '✗', '∙')
    """
    kind = _KINDS.get(word.lower(), "ready")
    return StatusLook(kind, glyphs.icons[kind], _TOKENS[kind], word)


def status_text(word: str, palette: Palette, *, glyphs: Glyphs = UNICODE, label: str | None = None) -> Text:
    """Icon and word in the colour of the state, the word replaced by `label` where given.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> status_text("dead", PLAIN).plain, status_text("running", PLAIN, label="w-02").plain
    ('✘ dead', '▸ w-02')
    """
    look = status_look(word, glyphs)
    shown = one_line(look.word if label is None else label, 40, glyphs=glyphs)
    return Text(f"{look.icon} {shown}", palette.style(look.token), no_wrap=True, overflow="ellipsis", end="")


def icon_text(word: str, palette: Palette, *, glyphs: Glyphs = UNICODE) -> Text:
    """The icon alone, for a column one cell wide whose word stands elsewhere in the row.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> icon_text("retried", PLAIN).plain
    '↻'
    """
    look = status_look(word, glyphs)
    return Text(look.icon, palette.style(look.token), no_wrap=True, end="")
