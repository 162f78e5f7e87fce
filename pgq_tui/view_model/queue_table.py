"""The queues as a table: what waits, for how long, how fast it goes, how much of it fails."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from rich.text import Text

from pgq_core.domain.snapshot import DEPTH_CAP, Count, QueueView
from pgq_tui.view_model.figures import format_count, format_load, format_percent, format_rate
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.sparks import sparkline
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.times import FOREVER, MISSING, format_duration, format_span

TREND_WIDTH = 10
QUEUE_COLUMNS = (
    TableColumn("icon", "", 1),
    TableColumn("queue", "QUEUE", 9, flex=2),
    TableColumn("wait", "WAIT", 6, is_right=True),
    TableColumn("oldest", "OLDEST", 6, is_right=True),
    TableColumn("later", "LATER", 5, is_right=True, drop=7),
    TableColumn("retry", "RETRY", 5, is_right=True, drop=6),
    TableColumn("run", "RUN/CAP", 8, is_right=True),
    TableColumn("in", "IN/s", 5, is_right=True, drop=8),
    TableColumn("out", "OUT/s", 5, is_right=True, drop=1),
    TableColumn("p50", "p50", 5, is_right=True, drop=9),
    TableColumn("p95", "p95", 5, is_right=True, drop=4),
    TableColumn("fail", "FAIL%", 5, is_right=True, drop=3),
    TableColumn("dead", "DEAD", 5, is_right=True, drop=2),
    TableColumn("eta", "ETA", 6, is_right=True, drop=10),
    TableColumn("trend", "15m OUT", TREND_WIDTH, drop=5),
    TableColumn("error", "LAST ERROR", 14, flex=3, drop=11),
)
NO_QUEUES = "no queue has jobs or workers yet: enqueue one, or start pgq-core worker --app your_tasks"
MANY_FAILURES = 0.2
SOME_FAILURES = 0.05


def queue_row(
    queue: QueueView, now: datetime, palette: Palette, *, in_trouble: Collection[str] = (), glyphs: Glyphs = UNICODE
) -> TableRow:
    """One queue; numbers that say nothing are faint, those that say trouble have its colour.

    >>> from datetime import UTC, timedelta
    >>> from pgq_tui.view_model.palette import PLAIN
    >>> now = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
    >>> since = now - timedelta(seconds=130)
    >>> queue = QueueView("emails", pending=Count(812), running=18, capacity=20, oldest_pending_at=since)
    >>> [cell.plain for cell in queue_row(queue, now, PLAIN).cells[:4]]
    ['✓', 'emails', '812', '2m10s']
    """

    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    def number(text: str, value: float | None, token: Token = Token.TEXT) -> Text:
        return put(text, token if value else Token.DIM)

    oldest = (now - queue.oldest_pending_at).total_seconds() if queue.oldest_pending_at else None
    word = queue_state(queue, in_trouble)
    look = status_look(word, glyphs)
    return TableRow(
        queue.name,
        (
            put(look.icon, look.token),
            put(queue.name, Token.TEXT if word != "paused" else Token.PAUSED),
            number(count_text(queue.pending), queue.pending.value),
            number(format_span(oldest), oldest),
            number(count_text(later(queue)), later(queue).value, Token.SCHEDULED),
            number(count_text(queue.retrying), queue.retrying.value, Token.RETRY),
            number(format_load(queue.running, queue.capacity), queue.running, Token.RUNNING),
            number(format_rate(queue.rate_in, unit=""), queue.rate_in),
            number(format_rate(queue.rate_out, unit=""), queue.rate_out),
            number(format_duration(queue.p50), queue.p50),
            number(format_duration(queue.p95), queue.p95),
            put(format_percent(queue.failure_share, unit=""), _failure_token(queue.failure_share)),
            number(count_text(queue.dead), queue.dead.value, Token.DEAD),
            put(*_eta(queue)),
            put(sparkline(queue.trend, width=TREND_WIDTH, glyphs=glyphs), Token.OK if any(queue.trend) else Token.DIM),
            put(queue.last_error or "", Token.DIM),
        ),
    )


def queue_state(queue: QueueView, in_trouble: Collection[str] = ()) -> str:
    """One word for how a queue is.

    >>> queue_state(QueueView("a", paused=True)), queue_state(QueueView("a"), {"a"}), queue_state(QueueView("a"))
    ('paused', 'warning', 'idle')
    """
    if queue.paused:
        return "paused"
    if queue.name in in_trouble:
        return "warning"
    return "ok" if queue.pending.value or queue.running or queue.rate_out else "idle"


def later(queue: QueueView) -> Count:
    """Jobs that were given a later time, without those that wait for their next attempt.

    >>> later(QueueView("a", scheduled=Count(98), retrying=Count(86))).value
    12
    """
    return Count(max(queue.scheduled.value - queue.retrying.value, 0), queue.scheduled.exact)


def count_text(count: Count) -> str:
    """A count, with a mark when it is not exact.

    >>> count_text(Count(812)), count_text(Count(10_000, False)), count_text(Count(12_400, False))
    ('812', '10k+', '~12.4k')
    """
    if count.exact:
        return format_count(count.value)
    return format_count(count.value, cap=DEPTH_CAP) if count.value <= DEPTH_CAP else f"~{format_count(count.value)}"


def drain_seconds(queue: QueueView) -> float | None:
    """How long until nothing waits if all goes on as now; infinite when more comes than goes, None when unknown.

    >>> drain_seconds(QueueView("a", pending=Count(100), rate_in=1.0, rate_out=3.0))
    50.0
    >>> drain_seconds(QueueView("a", pending=Count(1), rate_in=3.0, rate_out=1.0)), drain_seconds(QueueView("a"))
    (inf, None)
    """
    if not queue.pending.value or queue.rate_in is None:
        return None
    gain = queue.rate_out - queue.rate_in
    return queue.pending.value / gain if gain > 0 else float("inf")


def _eta(queue: QueueView) -> tuple[str, Token]:
    if queue.paused and queue.pending.value:
        return "paused", Token.PAUSED
    seconds = drain_seconds(queue)
    if seconds is None:
        return MISSING, Token.DIM
    shown = format_span(seconds)
    return shown, Token.RETRY if shown == FOREVER else Token.TEXT


def _failure_token(share: float | None) -> Token:
    if not share:
        return Token.DIM
    if share >= MANY_FAILURES:
        return Token.FAILED
    return Token.RETRY if share >= SOME_FAILURES else Token.TEXT
