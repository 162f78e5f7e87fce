"""Everything about one dead letter, or about one kind of failure, as a detail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from rich.text import Text

from pgq_core.domain.snapshot import DeadGroup, DeadLetterDetail, DeadLetterView
from pgq_tui.view_model.dead_table import NO_FINGERPRINT, short_age
from pgq_tui.view_model.detail import Detail, Fact, JsonSection, Section, StyledSection, TextSection, TracebackSection
from pgq_tui.view_model.figures import cut_size, format_id
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.json_text import RawJson
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.queue_table import count_text
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.times import format_age, format_clock, format_stamp

_REASONS = {
    "exhausted": "all attempts failed",
    "non_retryable": "can never succeed, says its handler",
    "timeout": "ran too long",
    "crash_loop": "killed its worker again and again",
    "unknown_type": "no worker knew its type",
    "malformed": "its data does not fit the handler",
    "expired": "was too late to run",
    "operator": "buried by an operator",
}
_LONGEST_LOG = 50
_LONGEST_FACT = 300


def letter_detail(
    detail: DeadLetterDetail, now: datetime, palette: Palette, *, zone: tzinfo | None = None, glyphs: Glyphs = UNICODE
) -> Detail:
    """The error first, then the traceback, the payload, and the story of all attempts."""
    letter = detail.letter
    sections: list[Section] = []
    if _is_long(letter.last_error):
        sections.append(TextSection("error", letter.last_error, Token.FAILED))
    if detail.traceback:
        sections.append(TracebackSection("traceback", detail.traceback))
    text, size = detail.payload_text, detail.payload_size
    sections.append(JsonSection(f"payload{cut_size(text, size)}", RawJson(text)))
    if detail.original_payload_text:
        sections.append(JsonSection("payload before it was edited", RawJson(detail.original_payload_text)))
    if attempts := _attempt_lines(detail.attempt_log, palette, zone, glyphs):
        sections.append(StyledSection("attempts", attempts))
    return Detail(f"dead letter {letter.id}", _facts(detail, now, zone), tuple(sections))


def _facts(detail: DeadLetterDetail, now: datetime, zone: tzinfo | None) -> tuple[Fact, ...]:
    letter = detail.letter
    why = f"{letter.reason}: {_REASONS.get(letter.reason, '')}".rstrip(": ")
    facts = [
        Fact("error", letter.last_error[:_LONGEST_FACT], Token.FAILED),
        Fact("why", f"{why}, {letter.attempts} of {letter.max_attempts} attempts"),
        Fact("job", f"{format_id(letter.original_job_id)} {letter.job_type or ''}".strip() + f" in {letter.queue}"),
        Fact("died", f"{format_stamp(letter.died_at, zone)}, {format_age(now - letter.died_at)}"),
    ]
    if letter.last_worker:
        facts.append(Fact("worker", letter.last_worker))
    if letter.fingerprint:
        facts.append(Fact("kind", letter.fingerprint, Token.LINK))
    if detail.idempotency_key:
        facts.append(Fact("key", detail.idempotency_key))
    if detail.priority:
        facts.append(Fact("priority", str(detail.priority)))
    if letter.replayed_from:
        facts.append(Fact("replay of", f"dead letter {letter.replayed_from}", Token.LINK))
    if letter.resolution:
        facts.append(Fact("resolved", _resolution(detail), Token.OK))
    if detail.note:
        facts.append(Fact("note", detail.note))
    return tuple(facts)


def _is_long(error: str) -> bool:
    """Whether the line at the top cannot hold it."""
    return len(error) > _LONGEST_FACT or "\n" in error.strip()


def _resolution(detail: DeadLetterDetail) -> str:
    letter = detail.letter
    words = f"{letter.resolution} by {letter.resolved_by or 'somebody'}"
    if letter.replayed_job_id:
        words += f", now job {letter.replayed_job_id}"
    return f"{words}: {detail.follow_up}" if detail.follow_up else words


def _attempt_lines(log: object, palette: Palette, zone: tzinfo | None, glyphs: Glyphs) -> tuple[Text, ...]:
    """One line for each attempt; what is no list of attempts is left out, it can be anything."""
    if not isinstance(log, list):
        return ()
    entries = [entry for entry in log if isinstance(entry, dict)][-_LONGEST_LOG:]
    return tuple(_attempt_line(entry, palette, zone, glyphs) for entry in entries)


def _attempt_line(entry: dict[str, object], palette: Palette, zone: tzinfo | None, glyphs: Glyphs) -> Text:
    outcome = str(entry.get("outcome", "failed"))
    look = status_look(outcome, glyphs)
    line = Text(no_wrap=True)
    line.append(f"#{entry.get('attempt', '?')!s:<3.5} ", palette.style(Token.DIM))
    line.append(f"{_clock(entry.get('finished_at') or entry.get('at'), zone):<9}", palette.style(Token.DIM))
    line.append(f"{look.icon} ", palette.style(look.token))
    return line.append_text(
        cell(str(entry.get("error") or outcome), palette.style(look.token), width=400, glyphs=glyphs)
    )


def _clock(value: object, zone: tzinfo | None) -> str:
    try:
        return format_clock(datetime.fromisoformat(str(value)), zone)
    except ValueError:
        return ""


def group_detail(
    group: DeadGroup,
    members: Sequence[DeadLetterView],
    now: datetime,
    palette: Palette,
    *,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> Detail:
    """One kind of failure: how many, since when, and its newest members."""
    facts = (
        Fact("kind", group.fingerprint or NO_FINGERPRINT, Token.LINK),
        Fact("letters", count_text(group.count), Token.DEAD),
        Fact("type", group.job_type or ""),
        Fact("queue", group.queue),
        Fact("first", f"{format_stamp(group.first_at, zone)}, {format_age(now - group.first_at)}"),
        Fact("last", f"{format_stamp(group.last_at, zone)}, {format_age(now - group.last_at)}"),
    )
    sections: list[Section] = [TextSection("error of the newest", group.sample_error, Token.FAILED)]
    if members:
        lines = tuple(_member_line(letter, now, palette, zone, glyphs) for letter in members)
        sections.append(StyledSection(f"newest {len(members)}", lines))
    return Detail(f"kind {(group.fingerprint or NO_FINGERPRINT)[:8]}", facts, tuple(sections))


def _member_line(letter: DeadLetterView, now: datetime, palette: Palette, zone: tzinfo | None, glyphs: Glyphs) -> Text:
    line = Text(no_wrap=True)
    line.append(f"{format_id(letter.id):>7} ", palette.style(Token.LINK))
    line.append(f"{short_age(letter.died_at, now, zone):>7} ", palette.style(Token.DIM))
    return line.append_text(cell(letter.last_error, palette.style(Token.TEXT), width=300, glyphs=glyphs))
