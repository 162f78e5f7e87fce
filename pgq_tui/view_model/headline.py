"""The numbers of the first line, and the alert marks on the tabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgq_core.domain.snapshot import Count, Overview
from pgq_tui.view_model.attention import Attention, Severity
from pgq_tui.view_model.chrome import Counter, Tab
from pgq_tui.view_model.figures import format_count
from pgq_tui.view_model.fleet import total_slots
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.queue_table import count_text, later


def counters(view: Overview, glyphs: Glyphs = UNICODE) -> tuple[Counter, ...]:
    """What waits, what runs, what comes back, what is dead."""
    busy, slots = total_slots(view)
    waiting = _sum(queue.pending for queue in view.queues)
    scheduled = _sum(later(queue) for queue in view.queues)
    retrying = _sum(queue.retrying for queue in view.queues)
    dead = view.dead_unresolved
    return (
        Counter("wait", count_text(waiting), rank=1),
        Counter("run", f"{format_count(busy)}/{format_count(slots)}", Token.RUNNING, rank=1),
        Counter("", count_text(retrying), _if(retrying, Token.RETRY), glyphs.icons["retry"], rank=3),
        Counter("", count_text(scheduled), _if(scheduled, Token.SCHEDULED), glyphs.icons["later"], rank=3),
        Counter("dead", count_text(dead), _if(dead, Token.DEAD), glyphs.icons["dead"], rank=1),
    )


def _sum(counts: Iterable[Count]) -> Count:
    return sum(counts, Count(0))


def _if(count: Count, token: Token) -> Token:
    return token if count.value else Token.DIM


def alert_tabs(tabs: Sequence[Tab], found: Sequence[Attention]) -> tuple[Tab, ...]:
    """The tabs with a mark on each screen that something points to; red when it is critical.

    >>> tabs = (Tab("queues", 2, "Queues"), Tab("dead", 5, "Dead"))
    >>> found = [Attention("k", Severity.CRITICAL, "emails", "fails", "queues", "emails")]
    >>> [tab.alert for tab in alert_tabs(tabs, found)]
    ['!', '']
    """
    worst: dict[str, Severity] = {}
    for attention in found:
        worst[attention.screen] = max(attention.severity, worst.get(attention.screen, Severity.NOTICE))
    return tuple(_marked(tab, worst.get(tab.id)) for tab in tabs)


def _marked(tab: Tab, severity: Severity | None) -> Tab:
    if severity is None or severity is Severity.NOTICE:
        return tab
    token = Token.FAILED if severity is Severity.CRITICAL else Token.RETRY
    return Tab(tab.id, tab.number, tab.label, "!", token)
