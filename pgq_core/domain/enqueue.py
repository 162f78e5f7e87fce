"""What may be enqueued: the ranges of a job's settings, checked before anything is sent."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, TypeGuard

from pgq_core.domain.job import JSON, MAX_PRIORITY, MIN_PRIORITY
from pgq_core.domain.payload import encode
from pgq_core.errors import InvalidJob, InvalidPayload, JobNotFound

MAX_NAME: Final = 200
MAX_KEY: Final = 500
"""Longest idempotency key, in characters: any such key fits into an index page."""
MAX_MAX_ATTEMPTS: Final = 1_000_000
MAX_DELAY: Final = timedelta(days=36_525)
"""A hundred years."""
MAX_TIMEOUT: Final = timedelta(days=366)
MAX_WAIT: Final = timedelta(days=36_525)
MAX_LEASE: Final = timedelta(days=366)
MAX_CLAIM: Final = 10_000
MIN_PATIENCE: Final = timedelta(milliseconds=1)
MAX_PATIENCE: Final = timedelta(days=24)
"""PostgreSQL's statement_timeout counts milliseconds in 31 bits, and zero is no limit there."""
MAX_CONNECTIONS: Final = 262_143
"""As PostgreSQL's own."""
MAX_TRACE_CONTEXT: Final = 8 * 1024
_ID_BITS = 63  # of a bigint, without its sign
_SHOWN_BITS = 126  # numbers of up to 38 digits
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # as the table has it: shown as a time everywhere on earth
_LAST_YEAR = 9998  # one year below the end of what Python's datetime can show in any time zone


class JobSettings(NamedTuple):
    """All of a job but what it is to do and its key, checked. `trace_context` is JSON text."""

    queue: str
    max_attempts: int
    priority: int = 0
    delay: timedelta | None = None
    not_before: datetime | None = None
    timeout: timedelta | None = None
    trace_context: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A checked job, ready to be inserted. `data` and `trace_context` are JSON text."""

    job_type: str
    data: bytes
    queue: str
    max_attempts: int
    priority: int = 0
    delay: timedelta | None = None
    not_before: datetime | None = None
    idempotency_key: str | None = None
    timeout: timedelta | None = None
    trace_context: str | None = None

    @property
    def payload(self) -> str:
        return f"{payload_head(self.job_type)}{self.data.decode()}}}"


@lru_cache(maxsize=1024)
def payload_head(job_type: str) -> str:
    """The text of a payload up to its data; behind that comes one brace."""
    return f'{{"type":{encode(job_type).decode()},"data":'


def checked_name(field: str, name: object) -> str:
    """A queue's or a type's name: 1 to 200 characters, no control characters, no comma (lists of names have commas)."""
    if not isinstance(name, str) or not name:
        raise InvalidJob(field, f"it must be text of 1 to {MAX_NAME} characters")
    return _checked_text(field, str.__str__(name))  # plain: of a StrEnum, too


@lru_cache(maxsize=1024)  # the same few names with every enqueue
def _checked_text(field: str, name: str) -> str:
    if len(name) > MAX_NAME:
        raise InvalidJob(field, f"{len(name)} characters are more than {MAX_NAME}")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in name):
        raise InvalidJob(field, "it contains a control character or a lone surrogate")
    if "," in name or name != name.strip():
        raise InvalidJob(field, "a name has no comma and no blank at its ends")
    return name


def checked_key(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidJob("idempotency_key", f"it must be text of 1 to {MAX_KEY} characters, or None")
    if len(key) > MAX_KEY:
        raise InvalidJob("idempotency_key", f"{len(key)} characters are more than {MAX_KEY}")
    if any(sign == "\x00" or "\ud800" <= sign <= "\udfff" for sign in key):
        raise InvalidJob("idempotency_key", "it contains NUL or a lone surrogate")
    return str.__str__(key)  # plain


def checked_priority(priority: object) -> int:
    if not _is_integer(priority) or not MIN_PRIORITY <= priority <= MAX_PRIORITY:
        raise InvalidJob("priority", f"{_shown(priority)} is no integer between {MIN_PRIORITY} and {MAX_PRIORITY}")
    return int(priority)


def checked_max_attempts(number: object) -> int:
    if not _is_integer(number) or not 1 <= number <= MAX_MAX_ATTEMPTS:
        raise InvalidJob("max_attempts", f"{_shown(number)} is no integer between 1 and {MAX_MAX_ATTEMPTS}")
    return int(number)


def checked_delay(delay: object) -> timedelta:
    return _span("delay", delay, MAX_DELAY)


def checked_timeout(timeout: object) -> timedelta:
    """Zero means no limit."""
    return _span("timeout", timeout, MAX_TIMEOUT)


def checked_wait(timeout: object) -> timedelta:
    """How long to wait for a result; zero looks once."""
    return _span("timeout", timeout, MAX_WAIT)


def checked_lease(lease: object) -> timedelta:
    span = _span("lease", lease, MAX_LEASE)
    if not span:
        raise InvalidJob("lease", "a claim without time is no claim")
    return span


def checked_limit(limit: object) -> int:
    if not _is_integer(limit) or not 1 <= limit <= MAX_CLAIM:
        raise InvalidJob("limit", f"{_shown(limit)} is no integer between 1 and {MAX_CLAIM}")
    return int(limit)


def checked_id(job_id: object) -> int:
    """A number that the database can look for. Raises JobNotFound for one that no job can have."""
    if not _is_integer(job_id) or job_id.bit_length() > _SHOWN_BITS:
        raise InvalidJob("id", f"{_shown(job_id)} is no id of a job")
    if job_id.bit_length() > _ID_BITS:
        raise JobNotFound(int(job_id))
    return int(job_id)


def checked_patience(timeout: object) -> float:
    """How long a queue waits for its database, in seconds."""
    span = _span("timeout", timeout, MAX_PATIENCE)
    if span < MIN_PATIENCE:
        raise InvalidJob("timeout", "less than a millisecond is no time for an answer")
    return span.total_seconds()


def checked_text(field: str, text: object) -> str:
    """What a connection begins with. libpq reads up to a NUL, and would go to another place than the one given."""
    if not isinstance(text, str):
        raise InvalidJob(field, f"it must be text, not a {type(text).__name__}")
    if "\x00" in text:
        raise InvalidJob(field, "it contains NUL")
    return text


def checked_max_connections(number: object) -> int:
    if not _is_integer(number) or not 1 <= number <= MAX_CONNECTIONS:
        raise InvalidJob("max_connections", f"{_shown(number)} is no integer between 1 and {MAX_CONNECTIONS}")
    return int(number)


def checked_max_payload(number: object) -> int:
    """In bytes of JSON."""
    if not _is_integer(number) or number < 1:
        raise InvalidJob("max_payload", f"{_shown(number)} is no integer from 1 on")
    return int(number)


def checked_not_before(moment: object) -> datetime:
    """An aware time; one that is past means at once."""
    if not isinstance(moment, datetime):
        raise InvalidJob("not_before", f"a {type(moment).__name__} is no datetime")
    if moment.utcoffset() is None:
        raise InvalidJob("not_before", "it has no time zone; use datetime.now(timezone.utc) or another aware time")
    try:
        in_utc = datetime.combine(moment.date(), moment.time(), moment.tzinfo).astimezone(UTC)  # plain
    except OverflowError:
        if moment.year == 1:
            return _EARLIEST
        raise InvalidJob("not_before", "it lies outside the years 1 to 9998") from None
    if in_utc.year > _LAST_YEAR:
        raise InvalidJob("not_before", "it lies outside the years 1 to 9998")
    return max(in_utc, _EARLIEST)


def checked_trace_context(context: JSON) -> str:
    try:
        return encode(context, max_bytes=MAX_TRACE_CONTEXT).decode()
    except InvalidPayload as error:
        raise InvalidJob("trace_context", error.reason) from error


def checked_start(
    delay: timedelta | float | None, not_before: datetime | None
) -> tuple[timedelta | None, datetime | None]:
    """At most one of the two ways to say when."""
    if delay is not None and not_before is not None:
        raise InvalidJob("delay", "give a delay or not_before, not both")
    return (
        None if delay is None else checked_delay(delay),
        None if not_before is None else checked_not_before(not_before),
    )


def _span(field: str, value: object, longest: timedelta) -> timedelta:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise InvalidJob(field, f"a {type(value).__name__} is neither a timedelta nor seconds")
    if not 0 <= seconds <= longest.total_seconds():  # false for NaN too
        raise InvalidJob(field, f"{_shown(seconds)} s is not between 0 and {longest.total_seconds():.0f} s")
    if isinstance(value, timedelta):  # a plain one, of a subclass too
        return timedelta(value.days, value.seconds, value.microseconds)
    return timedelta(seconds=seconds)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A number as text, however long it is."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return "a number of more than 38 digits"
    return str(value) if isinstance(value, (int, float)) else f"a {type(value).__name__}"
