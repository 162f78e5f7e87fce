"""What a benchmark is asked to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from pgq_core.bench.handlers import NOOP, SLEEP, THREAD
from pgq_core.errors import InvalidSettings


class ScenarioName(StrEnum):
    DRAIN = "drain"
    STEADY = "steady"
    BACKLOG = "backlog"
    FUTURE = "future"
    HELD_SNAPSHOT = "held-snapshot"
    LATENCY = "latency"
    ENQUEUE = "enqueue"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class Work:
    """What each job does: nothing on the event loop, nothing on a thread, or a wait of some milliseconds."""

    job_type: str = NOOP
    milliseconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Work:
        """Raises InvalidSettings.

        >>> Work.parse("thread").job_type, Work.parse("sleep:2.5").milliseconds
        ('bench.thread', 2.5)
        """
        if text == "noop":
            return cls(NOOP)
        if text == "thread":
            return cls(THREAD)
        if match := re.fullmatch(r"sleep:(\d+(?:\.\d+)?)", text):
            return cls(SLEEP, float(match[1]))
        raise InvalidSettings(f"handler {text!r}: write noop, thread or sleep:MILLISECONDS")

    def __str__(self) -> str:
        kind = self.job_type.rpartition(".")[2]
        return f"{kind}:{self.milliseconds:g}" if self.job_type == SLEEP else kind

    def data(self, number: int) -> dict[str, float]:
        return {"n": number, "ms": self.milliseconds} if self.job_type == SLEEP else {"n": number}


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """None: the scenario's own default."""

    scenarios: tuple[ScenarioName, ...] = (ScenarioName.DRAIN,)
    dsn: str | None = None
    """Where databases may be made and dropped. None: an embedded server of the benchmark's own."""
    workers: int | None = None
    jobs: int = 100_000
    concurrency: int | None = None
    work: Work = Work()
    rounds: int | None = None
    duration: float | None = None
    rows: int | None = None
    """How many rows stand in the way: the backlog, the future jobs, the dead entries."""
    share: float | None = None
    """Of the capacity, for an open-loop load."""
    capacity: float | None = None
    """Jobs a second. None: it is searched for where it is needed, which takes minutes."""
    producers: int = 1
