"""Templates and what they need: text that can do nothing, times and numbers as people read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from pgq_core.domain.clean import clean
from pgq_core.domain.job import JSON
from pgq_core.domain.snapshot import Count, DeadGroup, DeadLetterView

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONGEST_AGO = 60 * _DAY


def render(template: str, values: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_environment.get_template(template).render(**values), status)


def shown(text: str | None) -> str:
    """One line: controls and marks that reorder text become visible signs; the template escapes the rest."""
    return clean(text or "")


def block(text: str | None) -> str:
    return clean(text or "", multiline=True)


def message(failure: DeadLetterView | DeadGroup) -> str:
    """The error without the class, which stands beside it."""
    text = failure.last_error if isinstance(failure, DeadLetterView) else failure.sample_error
    return shown(text.removeprefix(f"{failure.error_class}: "))


def pretty(value: JSON) -> str:
    """JSON for reading, text as it is; what could act on the page or hide is escaped."""
    return clean(json.dumps(value, ensure_ascii=False, indent=2), multiline=True)


def ago(moment: datetime | None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> str:
    """
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [ago(at, now=lambda: at.replace(**later)) for later in ({"second": 7}, {"minute": 5}, {"hour": 3}, {"day": 9})]
    ['7 s ago', '5 min ago', '3 h ago', '8 d ago']
    """
    if moment is None:
        return "–"
    seconds = int((now() - moment).total_seconds())
    if seconds < _MINUTE:
        return f"{max(seconds, 0)} s ago"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min ago"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h ago"
    return f"{seconds // _DAY} d ago" if seconds < _LONGEST_AGO else f"{moment:%Y-%m-%d}"


def stamp(moment: datetime | None) -> str:
    return "–" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def moment(text: str) -> str:
    """A time as JSON has it, in the form of all others; what is none is shown as it is.

    >>> moment("2026-01-01T10:00:00.123+02:00"), moment("2026-01-01T10:00:00"), moment("soon")
    ('2026-01-01 08:00:00 UTC', '2026-01-01T10:00:00', 'soon')
    """
    try:
        found = datetime.fromisoformat(text)
        return stamp(found) if found.tzinfo is not None else shown(text)
    except (ValueError, OverflowError):
        return shown(text)


def counted(count: Count) -> str:
    """
    >>> counted(Count(1234)), counted(Count(10_000, exact=False))
    ('1,234', '10,000+')
    """
    return f"{count.value:,}" if count.exact else f"{count.value:,}+"


def _environment_of_pages() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "shown": shown,
        "block": block,
        "message": message,
        "pretty": pretty,
        "ago": ago,
        "stamp": stamp,
        "moment": moment,
        "counted": counted,
    }
    environment.filters.update(filters)
    return environment


_environment: Final = _environment_of_pages()
