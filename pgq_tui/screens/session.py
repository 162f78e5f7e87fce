"""What all screens share while the console runs: the backend, the last picture, the link, the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from pgq_core.domain.snapshot import Overview, PoolView
from pgq_tui.backend.protocol import Backend
from pgq_tui.screens.journal import Journal
from pgq_tui.screens.link import LinkMonitor
from pgq_tui.view_model.attention import Attention, needs_attention
from pgq_tui.view_model.dead_supervisors import without_supervisors
from pgq_tui.view_model.queue_order import QueueOrder
from pgq_tui.view_model.windows import DEFAULT_WINDOW

INTERVALS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
DEFAULT_INTERVAL = 1.0


@dataclass(slots=True)
class Session:
    """One run of the console. `monotonic` is its clock; a clock that stands still makes pictures that stand still."""

    backend: Backend
    context: str = ""
    is_read_only: bool = False
    interval: float = DEFAULT_INTERVAL
    zone: tzinfo | None = UTC
    window: timedelta = DEFAULT_WINDOW
    monotonic: Callable[[], float] = time.monotonic
    link: LinkMonitor = field(default_factory=LinkMonitor)
    journal: Journal = field(default_factory=Journal)
    overview: Overview | None = None
    attention: tuple[Attention, ...] = ()
    dead_supervisors: set[str] = field(default_factory=set)
    """Known here to be dead, while the database still waits for their heartbeats."""
    queue_order: QueueOrder = field(default_factory=QueueOrder)
    scaling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the number of a pool is changed."""
    started_at: float = 0.0
    _overview_at: float = 0.0

    def __post_init__(self) -> None:
        self.started_at = self.monotonic()

    def remember(self, overview: Overview) -> None:
        """The newest picture of the whole."""
        self.overview = without_supervisors(overview, self.dead_supervisors)
        self.attention = tuple(needs_attention(self.overview))
        self._overview_at = self.monotonic()

    def note_wanted(self, pool: PoolView, wanted: int) -> None:
        """A pool was just given this number; the next picture will say so too."""
        if self.overview is not None:
            place = (pool.host, pool.name)
            pools = (
                replace(one, wanted=wanted) if (one.host, one.name) == place else one for one in self.overview.pools
            )
            self.overview = replace(self.overview, pools=tuple(pools))

    @property
    def overview_age(self) -> float:
        """Seconds since the last picture of the whole; endless before the first."""
        return float("inf") if self.overview is None else self.monotonic() - self._overview_at

    @property
    def now(self) -> datetime:
        """The database's clock, carried on from the last picture by our own."""
        if self.overview is None:
            return datetime.now(UTC)
        return self.overview.taken_at + timedelta(seconds=self.monotonic() - self._overview_at)

    @property
    def can_write(self) -> bool:
        """Whether verbs are offered at this moment."""
        return not self.looks_only and self.link.is_healthy

    @property
    def looks_only(self) -> bool:
        """Whether this console may never change anything."""
        return self.is_read_only or self.backend.is_read_only

    def change_interval(self, step: int) -> float:
        """Slower (1) or faster (-1)."""
        nearest = min(range(len(INTERVALS)), key=lambda index: abs(INTERVALS[index] - self.interval))
        self.interval = INTERVALS[min(max(nearest + step, 0), len(INTERVALS) - 1)]
        return self.interval
