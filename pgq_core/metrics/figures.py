"""What one reading found: per queue, everything that the exposition shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final

from pgq_core.domain.health import LoopHealth
from pgq_core.domain.histogram import EMPTY, Cells, add_cells
from pgq_core.domain.job import Outcome
from pgq_core.domain.snapshot import Count
from pgq_core.queries.metrics import StatTotalsRow

_NONE: Final = Count(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Closed runs of all time."""

    by_outcome: Mapping[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    duration_seconds: float = 0.0
    durations: Cells = EMPTY
    waits: Cells = EMPTY

    @classmethod
    def of(cls, row: StatTotalsRow) -> Totals:
        counts = {outcome: getattr(row, outcome.value) for outcome in Outcome}
        return cls(counts, row.duration_seconds, row.durations, row.waits)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            {outcome: self.by_outcome[outcome] + other.by_outcome[outcome] for outcome in Outcome},
            self.duration_seconds + other.duration_seconds,
            add_cells([self.durations, other.durations]),
            add_cells([self.waits, other.waits]),
        )


@dataclass(frozen=True, slots=True)
class Depths:
    """How many jobs are in each state, and unresolved dead letters."""

    pending: Count = _NONE
    scheduled: Count = _NONE
    waiting: Count = _NONE
    running: Count = _NONE
    dead: Count = _NONE

    def __add__(self, other: Depths) -> Depths:
        return Depths(*(getattr(self, state.name) + getattr(other, state.name) for state in fields(Depths)))


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue, or all that share the label for the rest."""

    totals: Totals = field(default_factory=Totals)
    depths: Depths = field(default_factory=Depths)
    oldest_pending_at: datetime | None = None
    is_paused: bool = False
    workers: int = 0
    capacity: int = 0

    def __add__(self, other: QueueFigures) -> QueueFigures:
        return QueueFigures(
            self.totals + other.totals,
            self.depths + other.depths,
            _earliest((self.oldest_pending_at, other.oldest_pending_at)),
            self.is_paused or other.is_paused,
            self.workers + other.workers,
            self.capacity + other.capacity,
        )


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """One kind of loop in all live processes: the oldest last good turn, and how many have stopped turning."""

    oldest: float = 0.0
    stalled: int = 0

    @classmethod
    def by_name(cls, loops: Iterable[LoopHealth]) -> dict[str, LoopFigures]:
        figures: dict[str, LoopFigures] = {}
        for loop in loops:
            known = figures.get(loop.name, cls())
            figures[loop.name] = cls(max(known.oldest, loop.age), known.stalled + loop.is_stalled)
        return figures

    @classmethod
    def merged(cls, told: Mapping[str, LoopFigures], leading: Mapping[str, LoopFigures]) -> dict[str, LoopFigures]:
        """`leading`: of whoever leads the maintenance, as its lease tells. It may be one of those that told by a beat
        as well, so it is not added to them."""
        none = cls()
        pairs = {name: (told.get(name, none), leading.get(name, none)) for name in [*told, *leading]}
        return {name: cls(max(a.oldest, b.oldest), max(a.stalled, b.stalled)) for name, (a, b) in pairs.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything read at one time. `read_at`: this machine's monotonic clock; `taken_at`: the database's."""

    read_at: float
    taken_at: datetime
    seconds: float
    queues: Mapping[str, QueueFigures]
    workers_alive: int
    late_writes: int
    without_owner: int = 0
    """Running jobs that nobody alive holds."""
    oldest_running_age: float = 0.0
    loops: Mapping[str, LoopFigures] = field(default_factory=dict)


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
