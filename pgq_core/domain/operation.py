"""An operator's action: what it will act on, what became of it, and how it was written down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pgq_core.domain.job import JSON
from pgq_core.domain.snapshot import Count, DeadLetterView


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What became of one item of a bulk verb: done, or refused with the reason. `job_id` is the follow-up of a replay.

    `answer` of a cancel: 'cancelled' is final; 'requested': its worker was asked, and the run may still succeed.
    """

    id: int
    refusal: str | None = None
    job_id: int | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What a bulk verb did, and the operation it was written down as (for undo)."""

    operation_id: int | None
    items: tuple[ItemResult, ...] = ()

    @property
    def done(self) -> int:
        return sum(1 for item in self.items if item.refusal is None)

    @property
    def refused(self) -> int:
        return len(self.items) - self.done


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What a verb on one queue, pool or worker did, and the operation it was written down as.

    `affected`: how many jobs a purge cancelled, how many workers a restart asked; else 1, or 0 when refused.
    """

    operation_id: int | None
    refusal: str | None = None
    affected: int = 0


@dataclass(frozen=True, slots=True)
class Preview:
    """What a bulk verb will act on: exactly these dead letters, whatever arrives later. `sample` shows the newest."""

    ids: tuple[int, ...]
    sample: tuple[DeadLetterView, ...]

    @property
    def count(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """What a purge will cancel: `jobs` that do not run now, none that arrives later (ids above `newest_id`)."""

    queue: str
    jobs: Count
    newest_id: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """One operator's action, as it was written down."""

    id: int
    at: datetime
    operator: str
    action: str
    target: str
    reason: str | None
    affected: int
    refused: int
    can_be_undone: bool
    undone_at: datetime | None
    undone_by: str | None


@dataclass(frozen=True, slots=True)
class OperationDetail:
    """An operator's action with the parameters it was given."""

    operation: OperationView
    parameters: JSON
