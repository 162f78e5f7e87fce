"""Dead letters as a table: one by one, or by kind of failure."""

from __future__ import annotations

from datetime import datetime, tzinfo

from rich.text import Text

from pgq_core.domain.snapshot import DeadGroup, DeadLetterView
from pgq_tui.view_model.figures import format_id
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.queue_table import count_text
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.times import MISSING, format_age, format_when

LETTER_COLUMNS = (
    TableColumn("id", "ID", 6, is_right=True),
    TableColumn("died", "DIED", 7, is_right=True),
    TableColumn("type", "TYPE", 23),
    TableColumn("queue", "QUEUE", 8, flex=1, drop=1),
    TableColumn("attempts", "ATT", 5, is_right=True, drop=3),
    TableColumn("error", "ERROR", 30, flex=5),
    TableColumn("reason", "REASON", 13, drop=2),
    TableColumn("job", "JOB", 9, is_right=True, drop=4),
)
GROUP_COLUMNS = (
    TableColumn("fingerprint", "KIND", 8),
    TableColumn("count", "JOBS", 6, is_right=True),
    TableColumn("type", "TYPE", 23),
    TableColumn("queue", "QUEUE", 8, flex=1, drop=3),
    TableColumn("error", "ERROR", 26, flex=5),
    TableColumn("first", "FIRST", 6, is_right=True, drop=2),
    TableColumn("last", "LAST", 7, is_right=True),
)
FINGERPRINT_SHOWN = 8
NO_FINGERPRINT = "(none)"


def letter_row(
    letter: DeadLetterView,
    now: datetime,
    palette: Palette,
    *,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> TableRow:
    """One dead letter."""

    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    return TableRow(
        str(letter.id),
        (
            put(format_id(letter.id), Token.LINK),
            put(short_age(letter.died_at, now, zone), Token.DIM),
            put(letter.job_type or MISSING),
            put(letter.queue, Token.DIM),
            put(f"{letter.attempts}/{letter.max_attempts}", Token.DIM),
            put(letter.last_error, Token.FAILED),
            put(letter.reason, Token.DIM),
            put(format_id(letter.original_job_id), Token.DIM),
        ),
    )


def group_row(
    group: DeadGroup,
    now: datetime,
    palette: Palette,
    *,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> TableRow:
    """One kind of failure."""

    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    return TableRow(
        group_key(group),
        (
            put((group.fingerprint or NO_FINGERPRINT)[:FINGERPRINT_SHOWN], Token.LINK),
            put(count_text(group.count), Token.DEAD),
            put(group.job_type or MISSING),
            put(group.queue, Token.DIM),
            put(group.sample_error, Token.FAILED),
            put(format_when(group.first_at, now, zone), Token.DIM),
            put(short_age(group.last_at, now, zone), Token.DIM),
        ),
    )


def group_key(group: DeadGroup) -> str:
    """What a group's row is known by."""
    return group.fingerprint or NO_FINGERPRINT


def short_age(at: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """How long ago within an hour, else the time or the day: what tells rows apart.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 3, 5, 12, 4, tzinfo=UTC)
    >>> [short_age(now - timedelta(minutes=m), now) for m in (0, 9, 96, 3000)]
    ['now', '9m ago', '10:28', 'Tue']
    """
    age = (now - at).total_seconds()
    hour = 3_600
    return format_age(age) if age < hour else format_when(at, now, zone)
