"""What a runner is to execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgq_core.errors import InvalidSettings

MAX_WEIGHT = 1000


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """One runner: its application, its queues and how many jobs it runs at a time."""

    apps: tuple[str, ...]
    """Values of `--app`."""
    queues: tuple[str, ...]
    """Names, each with its weight where several queues are served unevenly: `("mail=3", "reports")`."""
    concurrency: int
    pool: str | None = None
    supervisor_id: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """On top of the keeper's own environment."""
    grace: float | None = None
    """Seconds it has to finish what runs when it is to leave; None: as the settings say."""
    burst: bool = False
    """End when nothing is left to do."""


@dataclass(frozen=True, slots=True)
class ServedQueue:
    name: str
    weight: int = 1


def served_queues(queues: Sequence[str]) -> tuple[ServedQueue, ...]:
    """Names and weights. Raises InvalidSettings.

    >>> served_queues(("mail=3", "reports"))
    (ServedQueue(name='mail', weight=3), ServedQueue(name='reports', weight=1))
    """
    served = tuple(_served(entry) for entry in queues)
    names = [queue.name for queue in served]
    if not names:
        raise InvalidSettings("a worker needs at least one queue")
    if len(set(names)) < len(names):
        raise InvalidSettings(f"a queue is named twice: {', '.join(names)}")
    return served


def _served(entry: str) -> ServedQueue:
    name, equals, weight = entry.rpartition("=")
    if not equals:
        return ServedQueue(entry)
    if not name or not weight.isdecimal() or not 1 <= int(weight) <= MAX_WEIGHT:
        raise InvalidSettings(f"queue {entry!r}: write it as NAME or NAME=WEIGHT, weight from 1 to {MAX_WEIGHT}")
    return ServedQueue(name, int(weight))
