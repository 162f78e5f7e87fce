"""What a handler may wish for instead of returning a value: returned or raised, both work."""

from __future__ import annotations

from datetime import datetime, timedelta


class HandlerWish(Exception):
    """A deliberate outcome. An exception, so that it can be raised from deep inside a handler."""


class Retry(HandlerWish):
    """This attempt failed; try again, after `delay` when given, else by the retry policy. Costs an attempt."""

    def __init__(
        self, reason: str = "the handler asked for a retry", *, delay: timedelta | float | None = None
    ) -> None:
        self.reason = reason
        self.delay = timedelta(seconds=delay) if isinstance(delay, (int, float)) else delay
        super().__init__(reason)


class Snooze(HandlerWish):
    """Not now: run again after `delay` (or at `until`). Costs no attempt."""

    def __init__(
        self, delay: timedelta | float | None = None, *, until: datetime | None = None, reason: str | None = None
    ) -> None:
        if (delay is None) == (until is None):
            raise ValueError("Snooze needs either a delay or a time")
        if until is not None and until.tzinfo is None:
            raise ValueError("Snooze(until=...) needs a time zone")
        self.delay = timedelta(seconds=delay) if isinstance(delay, (int, float)) else delay
        self.until = until
        self.reason = reason
        super().__init__(reason or "the handler asked for a later time")


class Discard(HandlerWish):
    """This job is no longer wanted: it ends here, without a dead letter."""

    def __init__(self, reason: str = "discarded by its handler") -> None:
        self.reason = reason
        super().__init__(reason)


class Cancel(HandlerWish):
    """This job stops here because it was asked to: it ends as cancelled."""

    def __init__(self, reason: str = "cancelled") -> None:
        self.reason = reason
        super().__init__(reason)


class NonRetryable(HandlerWish):
    """This job can never succeed: to the dead letters at once, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
