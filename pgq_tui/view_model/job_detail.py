"""Everything about one run or one job as a detail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from rich.text import Text

from pgq_core.domain.snapshot import JobRecord, LiveJob, RunDetail, RunView
from pgq_tui.view_model.detail import Detail, Fact, JsonSection, Section, StyledSection, TextSection, TracebackSection
from pgq_tui.view_model.figures import cut_size, format_id
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.job_table import job_state
from pgq_tui.view_model.json_text import RawJson
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.status import status_look, status_text
from pgq_tui.view_model.times import format_age, format_clock, format_duration, format_stamp, format_until

_RUNS_SHOWN = 30


def run_detail(
    detail: RunDetail,
    record: JobRecord | None,
    now: datetime,
    palette: Palette,
    *,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> Detail:
    """One closed run, and what became of its job."""
    run = detail.run
    facts = [
        Fact("outcome", status_text(run.outcome, palette, glyphs=glyphs)),
        Fact("job", f"{format_id(run.job_id)} {run.job_type or ''}".strip()),
        Fact("queue", run.queue or ""),
        Fact("attempt", str(run.attempt) if run.attempt else "none: it ended without running"),
        Fact("finished", f"{format_stamp(run.finished_at, zone)}, {format_age(now - run.finished_at)}"),
        Fact("took", format_duration(run.duration)),
        Fact("worker", run.worker_id),
    ]
    if run.due_at:
        facts.append(Fact("waited", format_duration(max((run.started_at - run.due_at).total_seconds(), 0.0))))
    if run.replayed_from:
        facts.append(Fact("replay of", f"dead letter {run.replayed_from}", Token.LINK))
    sections: list[Section] = []
    if run.error:
        sections.append(TextSection("error", run.error, status_look(run.outcome).token))
    if detail.traceback:
        sections.append(TracebackSection("traceback", detail.traceback))
    if detail.result_text:
        sections.append(JsonSection("result", RawJson(detail.result_text)))
    if record:
        facts.append(Fact("job is", status_text(record.state, palette, glyphs=glyphs)))
        sections += _record_sections(record, palette, zone, glyphs)
    return Detail(f"run {run.id}", tuple(facts), tuple(sections))


def job_detail(
    record: JobRecord, now: datetime, palette: Palette, *, zone: tzinfo | None = None, glyphs: Glyphs = UNICODE
) -> Detail:
    """One job in whatever state: its row while it lives, its runs, its end."""
    facts = [Fact("state", status_text(_state(record), palette, glyphs=glyphs))]
    if record.live:
        facts += _live_facts(record.live, now, zone)
    elif record.runs:
        facts.append(Fact("type", record.runs[-1].job_type or ""))
        facts.append(Fact("queue", record.runs[-1].queue or ""))
    if record.replayed_from:
        facts.append(Fact("replay of", f"dead letter {record.replayed_from}", Token.LINK))
    sections: list[Section] = []
    if record.live and record.live.job.last_error:
        sections.append(TextSection("last error", record.live.job.last_error, Token.RETRY))
    sections += _record_sections(record, palette, zone, glyphs)
    return Detail(f"job {record.id}", tuple(facts), tuple(sections))


def _state(record: JobRecord) -> str:
    return job_state(record.live.job) if record.live else record.state


def _live_facts(live: LiveJob, now: datetime, zone: tzinfo | None) -> list[Fact]:
    job = live.job
    facts = [
        Fact("type", f"{job.job_type} in {job.queue}"),
        Fact("attempts", f"{job.attempts} of {job.max_attempts} spent"),
        Fact("created", f"{format_stamp(job.created_at, zone)}, {format_age(now - job.created_at)}"),
    ]
    if job.status == "running":
        for_seconds = max((now - live.locked_at).total_seconds(), 0.0) if live.locked_at else None
        span = f", for {format_duration(for_seconds)}" if for_seconds is not None else ""
        facts.append(Fact("worker", f"{job.locked_by or ''}{span}", Token.RUNNING))
        if live.cancel_requested:
            facts.append(Fact("asked", "to stop; its handler has to agree", Token.PAUSED))
    elif job.not_before > now:
        seconds = (job.not_before - now).total_seconds()
        facts.append(Fact("due", f"{format_stamp(job.not_before, zone)}, {format_until(seconds)}", Token.SCHEDULED))
    facts += _why_facts(live)
    if job.priority:
        facts.append(Fact("priority", str(job.priority)))
    if job.idempotency_key:
        facts.append(Fact("key", job.idempotency_key))
    if live.timeout:
        facts.append(Fact("timeout", format_duration(live.timeout)))
    return facts


def _why_facts(live: LiveJob) -> list[Fact]:
    """Why it does not run, as far as its row says."""
    job = live.job
    facts = []
    if job.waiting_for:
        facts.append(Fact("waits for", job.waiting_for, Token.WAITING))
    if job.no_worker_knows_type:
        words = f"no worker knows type {job.job_type}: pass its module to pgq-core worker --app"
        facts.append(Fact("waits", words, Token.RETRY))
    if live.no_worker_serves_queue:
        facts.append(Fact("waits", f"no worker that is alive serves queue {job.queue}", Token.RETRY))
    if live.is_queue_paused:
        facts.append(Fact("waits", f"queue {job.queue} is paused", Token.PAUSED))
    if live.is_suspect:
        facts.append(Fact("suspect", "its worker died with several jobs: it runs alone next time", Token.RETRY))
    if live.losses:
        facts.append(Fact("lost", f"{live.losses} times with its worker", Token.RETRY))
    return facts


def _record_sections(record: JobRecord, palette: Palette, zone: tzinfo | None, glyphs: Glyphs) -> list[Section]:
    sections: list[Section] = []
    if record.live:
        text, size = record.live.payload_text, record.live.payload_size
        sections.append(JsonSection(f"payload{cut_size(text, size)}", RawJson(text)))
    if record.runs:
        sections.append(StyledSection("runs", run_lines(record.runs, palette, zone, glyphs)))
    if record.dead_letters:
        words = tuple(_letter_line(f"{one.id} {one.reason}", palette, glyphs) for one in record.dead_letters)
        sections.append(StyledSection("dead letters", words))
    return sections


def _letter_line(words: str, palette: Palette, glyphs: Glyphs) -> Text:
    return cell(f"{glyphs.icons['dead']} {words}", palette.style(Token.DEAD), glyphs=glyphs)


def run_lines(
    runs: Sequence[RunView], palette: Palette, zone: tzinfo | None, glyphs: Glyphs = UNICODE
) -> tuple[Text, ...]:
    """One line for each of the last runs of a job."""
    return tuple(_run_line(run, palette, zone, glyphs) for run in runs[-_RUNS_SHOWN:])


def _run_line(run: RunView, palette: Palette, zone: tzinfo | None, glyphs: Glyphs) -> Text:
    look = status_look(run.outcome, glyphs)
    line = Text(no_wrap=True)
    line.append(f"#{run.attempt:<2} {format_clock(run.finished_at, zone)} ", palette.style(Token.DIM))
    line.append(f"{look.icon} {run.outcome:<9} ", palette.style(look.token))
    line.append(f"{format_duration(run.duration):>6} ", palette.style(Token.DIM))
    if run.error:
        line.append_text(cell(run.error, palette.style(look.token), width=300, glyphs=glyphs))
    return line
