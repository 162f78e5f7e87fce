"""Everything about one queue as a detail."""

from __future__ import annotations

import math
from datetime import datetime, tzinfo

from rich.text import Text

from pgq_core.domain.audit import Audit, kept_runs
from pgq_core.domain.snapshot import Overview, QueueView, WorkerView
from pgq_tui.view_model.attention import needs_attention
from pgq_tui.view_model.detail import Detail, Fact, Section, StyledSection, TextSection
from pgq_tui.view_model.figures import format_load, format_percent, format_rate, load_words
from pgq_tui.view_model.fleet import live_workers, worker_state
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.queue_table import count_text, drain_seconds, later, queue_state
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.sparks import sparkline
from pgq_tui.view_model.status import status_look, status_text
from pgq_tui.view_model.times import format_age, format_duration, format_span, format_stamp


def queue_detail(
    queue: QueueView, view: Overview, palette: Palette, *, zone: tzinfo | None = None, glyphs: Glyphs = UNICODE
) -> Detail:
    """What waits, what runs, how fast, who serves it, and what is wrong."""
    found = [one for one in needs_attention(view) if one.screen == "queues" and one.target == queue.name]
    state = queue_state(queue, {one.target for one in found})
    facts = [
        Fact("state", status_text("ok" if state == "warning" else state, palette, glyphs=glyphs, label=_state(state))),
        *_pause_facts(queue, view.taken_at, zone),
        Fact("waiting", _waiting(queue, view.taken_at)),
        Fact("running", load_words(queue.running, queue.capacity), Token.RUNNING if queue.running else Token.DIM),
        Fact("later", f"{count_text(later(queue))} scheduled, {count_text(queue.retrying)} to try again"),
        Fact("dead", count_text(queue.dead), Token.DEAD if queue.dead.value else Token.DIM),
        Fact("flow", _flow(queue)),
        Fact("run time", f"p50 {format_duration(queue.p50)}  p95 {format_duration(queue.p95)}"),
        Fact("failures", f"{format_percent(queue.failure_share)} of the runs of the last minute"),
    ]
    if queue.audit is not Audit.ALL:
        facts.append(Fact("runs kept", kept_runs(queue.audit, queue.audit_sample), Token.DIM))
    if queue.waiting.value:
        facts.insert(3, Fact("held", f"{count_text(queue.waiting)} by flow control", Token.WAITING))
    sections: list[Section] = []
    if found:
        token = palette.style(Token.RETRY)
        lines = tuple(cell(f"{glyphs.icons['warn']} {one.text}", token, glyphs=glyphs) for one in found)
        sections.append(StyledSection("needs attention", lines))
    if any(queue.trend):
        trend = Text(sparkline(queue.trend, glyphs=glyphs), palette.style(Token.OK))
        sections.append(StyledSection("finished, last 15 minutes", (trend,)))
    if workers := [worker for worker in live_workers(view) if queue.name in worker.queues]:
        lines = tuple(_worker_line(worker, palette, glyphs) for worker in workers)
        sections.append(StyledSection("workers", lines))
    if queue.last_error:
        sections.append(TextSection("last error", queue.last_error, Token.FAILED))
    return Detail(f"queue {queue.name}", tuple(facts), tuple(sections))


def _state(state: str) -> str:
    return {"ok": "working", "warning": "working", "idle": "idle, nothing waits", "paused": "paused"}.get(state, state)


def _pause_facts(queue: QueueView, now: datetime, zone: tzinfo | None) -> list[Fact]:
    if not queue.paused:
        return []
    since = f"{format_stamp(queue.paused_at, zone)}, {format_age(now - queue.paused_at)}" if queue.paused_at else ""
    facts = [Fact("paused", f"by {queue.paused_by or 'somebody'} {since}".strip(), Token.PAUSED)]
    return [*facts, Fact("because", queue.pause_reason)] if queue.pause_reason else facts


def _waiting(queue: QueueView, now: datetime) -> str:
    oldest = f", the oldest for {format_span(now - queue.oldest_pending_at)}" if queue.oldest_pending_at else ""
    return f"{count_text(queue.pending)} pending{oldest}"


def _flow(queue: QueueView) -> str:
    words = f"in {format_rate(queue.rate_in)}  out {format_rate(queue.rate_out)}"
    seconds = drain_seconds(queue)
    if seconds is None or queue.paused:
        return words
    return words + (", never drains like this" if math.isinf(seconds) else f", empty in {format_span(seconds)}")


def _worker_line(worker: WorkerView, palette: Palette, glyphs: Glyphs) -> Text:
    state = worker_state(worker)
    look = status_look("ok" if state == "running" else state, glyphs)
    line = Text(no_wrap=True).append(f"{look.icon} ", palette.style(look.token))
    line.append(f"{format_load(worker.running, worker.concurrency):>7} ", palette.style(Token.RUNNING))
    return line.append_text(cell(worker.id, palette.style(Token.TEXT), width=60, glyphs=glyphs))
