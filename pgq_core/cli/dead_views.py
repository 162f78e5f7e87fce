"""How dead letters look on paper."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from pgq_core.cli.output import plain, print_fields, print_json, print_table, print_text, raw_json, say
from pgq_core.domain.job import JSON
from pgq_core.domain.operation import Preview
from pgq_core.domain.snapshot import DeadGroup, DeadLetterDetail, DeadLetterView

COLUMNS = (">ID", ">JOB", "QUEUE", "TYPE", "REASON", ">ATTEMPTS", "DIED", "STATE", "ERROR")


def print_letters(letters: Sequence[DeadLetterView], *, as_json: bool) -> None:
    if as_json:
        print_json(letters)
        return
    print_table(COLUMNS, [_row(letter) for letter in letters], nothing="no dead letters")


def _row(letter: DeadLetterView) -> tuple[object, ...]:
    return (
        letter.id,
        letter.original_job_id,
        letter.queue,
        letter.job_type,
        letter.reason,
        f"{letter.attempts}/{letter.max_attempts}",
        letter.died_at,
        letter.resolution or "unresolved",
        letter.last_error,
    )


def print_groups(groups: Sequence[DeadGroup], *, as_json: bool) -> None:
    if as_json:
        print_json(groups)
        return
    rows = [
        (g.fingerprint or "none", g.count, g.job_type, g.queue, g.first_at, g.last_at, g.sample_error) for g in groups
    ]
    print_table(("FINGERPRINT", ">LETTERS", "TYPE", "QUEUE", "FIRST", "LAST", "ERROR"), rows, nothing="no dead letters")


def print_detail(detail: DeadLetterDetail, *, as_json: bool) -> None:
    is_whole = detail.payload_size <= len(detail.payload_text.encode())
    if as_json:
        letter, rest = plain(detail.letter), plain(detail)
        del rest["letter"]
        # The payload itself when it is whole; a cut one is no JSON any more and stays text.
        print_json({**letter, **rest, "payload": raw_json(detail.payload_text) if is_whole else None})
        return
    letter = detail.letter
    print_fields(
        (
            ("dead letter", letter.id),
            ("job", letter.original_job_id),
            ("queue", letter.queue),
            ("type", letter.job_type),
            ("reason", letter.reason),
            ("attempts", f"{letter.attempts} of {letter.max_attempts}"),
            ("priority", detail.priority),
            ("key", detail.idempotency_key),
            ("enqueued", detail.created_at),
            ("died", letter.died_at),
            ("worker", letter.last_worker),
            ("fingerprint", letter.fingerprint),
            ("replay of", letter.replayed_from),
            ("resolution", letter.resolution),
            ("resolved by", letter.resolved_by),
            ("replayed as", letter.replayed_job_id),
            ("follow-up", detail.follow_up),
            ("note", detail.note),
        )
    )
    _section("error", letter.last_error)
    _section("traceback", detail.traceback)
    _section("payload", detail.payload_text + ("" if is_whole else f" ... ({detail.payload_size:,} bytes in all)"))
    _section("payload before it was edited", detail.original_payload_text)
    _attempts(detail)


def _section(title: str, text: str | None) -> None:
    if text:
        print_text(f"\n{title}:\n{text}")


def _attempts(detail: DeadLetterDetail) -> None:
    entries = [entry for entry in detail.attempt_log if isinstance(entry, dict)]
    if not entries:
        return
    print_text("\nattempts:")
    rows = [_attempt_row(entry) for entry in entries]
    print_table((">NO", "OUTCOME", "WORKER", "STARTED", "FINISHED", "ERROR"), rows, nothing="")


def _attempt_row(entry: Mapping[str, JSON]) -> list[object]:
    times = [_moment(entry.get(name)) for name in ("started_at", "finished_at")]
    attempt, outcome, worker, error = (entry.get(name) or None for name in ("attempt", "outcome", "worker", "error"))
    return [attempt, outcome, worker, *times, error]


def _moment(text: JSON) -> object:
    """A text in the log, and a time on paper, as in every other table."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    return text


def dry_run(preview: Preview, would: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "count": preview.count, "ids": preview.ids, "sample": preview.sample})
        return
    if preview.sample:
        print_letters(preview.sample, as_json=False)
    say(f"{preview.count} {would}; nothing was changed")
