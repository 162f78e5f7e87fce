"""Whether what is on the screen is what the database says: last answer, outage, next try."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgq_core.errors import DatabaseUnavailable, SchemaError
from pgq_tui.view_model.chrome import Link
from pgq_tui.view_model.times import format_span

STALE_PERIODS = 3
_PREFIXES = re.compile(r"^(connection is bad: |connection failed: )?(connection to server .{0,200}? failed: )?")
_LEAST_STALE = 3.0


@dataclass(slots=True)
class LinkMonitor:
    """Told of every look; times are those of one monotonic clock."""

    answered_at: float | None = None
    failed_since: float | None = None
    failures: int = 0
    retry_at: float = 0.0
    error: Exception | None = None
    is_outage: bool = False
    outages: int = 0
    """How often the database went away: what was known before may not hold any more."""
    look_seconds: float | None = None

    def succeeded(self, at: float, seconds: float) -> None:
        self.answered_at = at
        self.look_seconds = seconds
        self.failed_since = None
        self.failures = 0
        self.error = None
        self.is_outage = False

    def failed(self, at: float, error: Exception, retry_in: float, *, is_outage: bool) -> None:
        self.failed_since = at if self.failed_since is None else self.failed_since
        self.failures += 1
        self.retry_at = at + retry_in
        self.error = error
        self.outages += is_outage and not self.is_outage
        self.is_outage = is_outage

    def state(self, at: float, interval: float, *, is_frozen: bool = False) -> Link:
        """What to call the picture: old data is never called live."""
        if self.is_outage:
            return Link.LOST
        if self.answered_at is None:
            return Link.LOADING
        if is_frozen:
            return Link.FROZEN
        limit = max(STALE_PERIODS * interval, _LEAST_STALE)
        return Link.STALE if self.error or at - self.answered_at > limit else Link.LIVE

    def age(self, at: float) -> float | None:
        """How old the picture is."""
        return None if self.answered_at is None else max(at - self.answered_at, 0.0)

    @property
    def is_healthy(self) -> bool:
        """Whether verbs make sense now."""
        return self.answered_at is not None and self.error is None

    @property
    def needs_schema(self) -> bool:
        return isinstance(self.error, SchemaError)

    def banner(self, at: float) -> str:
        """One line about an outage or an error; empty while all is well.

        >>> link = LinkMonitor(answered_at=10.0)
        >>> link.failed(20.0, OSError("connection refused"), 3.0, is_outage=True)
        >>> link.banner(32.0)
        'database lost 12s, try 2 now: connection refused'
        """
        if self.error is None or self.failed_since is None:
            return ""
        wait = self.retry_at - at
        again = f"try {self.failures + 1} in {format_span(wait)}" if wait >= 1 else f"try {self.failures + 1} now"
        what = "database lost" if self.is_outage else "cannot read"
        return f"{what} {format_span(at - self.failed_since)}, {again}: {cause(self.error)}"


def cause(error: Exception) -> str:
    """The error in one line, without the words that the banner has said already.

    >>> cause(DatabaseUnavailable('connection is bad: connection to server at "10.0.0.7", port 5432 failed: timed out'))
    'timed out'
    """
    words = str(getattr(error, "cause", None) or error).strip().partition("\n")[0]
    return _PREFIXES.sub("", words) or type(error).__name__


def lost_words(error: DatabaseUnavailable) -> str:
    """What is known of a write that failed: after an error of the server nothing happened, after silence who knows.

    >>> lost_words(DatabaseUnavailable("cannot execute UPDATE in a read-only transaction", sqlstate="25006"))
    'not done: cannot execute UPDATE in a read-only transaction'
    >>> lost_words(DatabaseUnavailable("server closed the connection"))
    'no answer, it may or may not have happened: server closed the connection'
    """
    # 57P..: the session was ended, perhaps after the commit and before the answer.
    if error.sqlstate is not None and not error.sqlstate.startswith(("57P", "08")):
        return f"not done: {cause(error)}"
    return f"no answer, it may or may not have happened: {cause(error)}"
