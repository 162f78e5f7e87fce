"""What a keeper tells its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pgq_core.worker.handle import RunnerHandle


class KeeperEventKind(StrEnum):
    SPAWNED = "spawned"
    READY = "ready"
    DRAINING = "draining"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    EXITED = "exited"
    WANTED = "wanted"
    """An operator wants something of this worker: detail is 'drain', 'stop' or 'restart'; the keeper carries it out."""
    WAKE = "wake"
    """A word came over the schema's channel: detail is the word."""
    DATABASE_LOST = "database_lost"
    DATABASE_BACK = "database_back"


@dataclass(frozen=True, slots=True)
class KeeperEvent:
    kind: KeeperEventKind
    handle: RunnerHandle | None = None
    detail: str = ""


EventSink = Callable[[KeeperEvent], None]
OutputSink = Callable[[RunnerHandle, str, list[str]], None]
