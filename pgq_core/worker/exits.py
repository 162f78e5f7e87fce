"""How a runner ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum


class ExitKind(StrEnum):
    STOPPED = "stopped"
    """It was asked to."""
    FINISHED = "finished"
    """Its burst is over."""
    REPLACE = "replace"
    """It gave itself up on purpose, or was given up for no fault of its start: start another at once."""
    REFUSED = "refused"
    """It ended before it was ready, and said why."""
    CRASHED = "crashed"
    """Anything else: a signal, a traceback."""

    @property
    def is_fault(self) -> bool:
        return self in {ExitKind.CRASHED, ExitKind.REFUSED}


@dataclass(frozen=True, slots=True)
class RunnerExit:
    """`code` or `signal` ("SIGKILL") as the kernel told it; `lived` in seconds."""

    kind: ExitKind
    code: int | None
    signal: str | None
    reason: str
    last_output: tuple[str, ...]
    lived: float


def signal_name(number: int) -> str:
    """
    >>> signal_name(9), signal_name(250)
    ('SIGKILL', 'signal 250')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
