"""Live jobs as a table, and the ones that run now as a shorter one."""

from __future__ import annotations

from datetime import datetime, tzinfo

from rich.text import Text

from pgq_core.domain.snapshot import JobView, RunningView
from pgq_tui.view_model.figures import format_id
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.times import MISSING, format_span, format_until, format_when

JOB_COLUMNS = (
    TableColumn("id", "ID", 8, is_right=True),
    TableColumn("state", "STATE", 11),
    TableColumn("queue", "QUEUE", 8),
    TableColumn("type", "TYPE", 17, flex=5),
    TableColumn("priority", "PRI", 4, is_right=True, drop=4),
    TableColumn("due", "DUE", 9, is_right=True),
    TableColumn("age", "AGE", 6, is_right=True, drop=3),
    TableColumn("attempts", "ATT", 4, is_right=True, drop=1),
    TableColumn("about", "WORKER / WHY / LAST ERROR", 12, flex=1, drop=2),
    TableColumn("key", "KEY", 12, flex=1, drop=5),
)
RUNNING_COLUMNS = (
    TableColumn("id", "JOB", 9, is_right=True),
    TableColumn("for", "FOR", 6, is_right=True),
    TableColumn("type", "TYPE", 23),
    TableColumn("queue", "QUEUE", 8, flex=1),
    TableColumn("attempt", "ATT", 5, is_right=True),
    TableColumn("worker", "WORKER", 22, flex=2),
)
LONG_RUN = 60.0
"""Seconds after which a running job is shown as long."""


def job_state(job: JobView) -> str:
    """The status of a job, with the word an operator uses for a job that failed before."""
    if job.status == "scheduled" and job.attempts > 0:
        return "retrying"
    if job.status == "pending" and job.no_worker_knows_type:
        return "no worker"
    return job.status


def job_row(
    job: JobView, now: datetime, palette: Palette, *, zone: tzinfo | None = None, glyphs: Glyphs = UNICODE
) -> TableRow:
    """One live job."""

    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    state = job_state(job)
    look = status_look("warning" if state == "no worker" else state, glyphs)
    return TableRow(
        str(job.id),
        (
            put(format_id(job.id), Token.LINK),
            put(f"{look.icon} {state}", look.token),
            put(job.queue),
            put(job.job_type),
            put(str(job.priority), Token.TEXT if job.priority else Token.DIM),
            put(*_due(job, now, zone)),
            put(format_span(now - job.created_at), Token.DIM),
            put(f"{job.attempts}/{job.max_attempts}", Token.RETRY if job.attempts else Token.DIM),
            put(*_about(job)),
            put(job.idempotency_key or "", Token.DIM),
        ),
    )


def running_row(run: RunningView, now: datetime, palette: Palette, *, glyphs: Glyphs = UNICODE) -> TableRow:
    """One job that runs now."""

    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    seconds = max((now - run.locked_at).total_seconds(), 0.0)
    worker = f"{run.worker_id} is gone" if run.is_orphan else run.worker_id
    return TableRow(
        str(run.job_id),
        (
            put(format_id(run.job_id), Token.LINK),
            put(format_span(seconds), Token.RETRY if seconds >= LONG_RUN else Token.RUNNING),
            put(run.job_type),
            put(run.queue, Token.DIM),
            put(f"{run.attempt}/{run.max_attempts}", Token.DIM),
            put(
                f"{glyphs.icons['stopped']} asked to stop, {worker}" if run.cancel_requested else worker,
                Token.FAILED if run.is_orphan else Token.PAUSED if run.cancel_requested else Token.DIM,
            ),
        ),
    )


def _due(job: JobView, now: datetime, zone: tzinfo | None) -> tuple[str, Token]:
    if job.status == "running":
        return MISSING, Token.DIM
    seconds = (job.not_before - now).total_seconds()
    hour = 3_600
    if seconds <= 0:
        return "now", Token.TEXT
    return (format_until(seconds) if seconds < hour else format_when(job.not_before, now, zone)), Token.SCHEDULED


def _about(job: JobView) -> tuple[str, Token]:
    if job.locked_by:
        return job.locked_by, Token.DIM
    if job.waiting_for:
        return f"waits for {job.waiting_for}", Token.WAITING
    if job.no_worker_knows_type:
        return "no live worker knows this type", Token.RETRY
    return job.last_error or "", Token.RETRY
