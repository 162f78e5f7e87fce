"""Reads the figures of one moment."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.health import LoopHealth, decode_loops
from pgq_core.domain.snapshot import Count, Overview, QueueView, WorkerView
from pgq_core.domain.window import WINDOWS
from pgq_core.inspector import Inspector
from pgq_core.metrics.figures import Depths, LoopFigures, QueueFigures, Reading, Totals
from pgq_core.metrics.labels import Labels
from pgq_core.metrics.totals import BASE_EVERY, TotalsMemory
from pgq_core.queries import Queries
from pgq_core.queries.reads import DutyRow


class MetricsReader:
    """Depths as the console has them, totals from the statistics; keep one for as long as you keep reading."""

    def __init__(
        self,
        queries: Queries,
        *,
        stale_limit: timedelta,
        labels: Labels | None = None,
        base_every: float = BASE_EVERY,
    ) -> None:
        self._queries = queries
        self._stale_limit = stale_limit
        self._inspector = Inspector(queries, stale_limit=stale_limit)
        self._labels = labels or Labels()
        self._totals = TotalsMemory(queries, self._labels, base_every=base_every)

    async def read(self, conn: AsyncConnection[Any]) -> Reading:
        began_at = time.monotonic()
        set_up = await self._queries.list_known_queues(most=self._labels.cap).fetch_all(conn)
        overview = await self._inspector.overview(conn, WINDOWS["1m"])
        self._labels.take_up(set_up)
        self._labels.take_up(view.name for view in overview.queues)
        totals = await self._totals.read(conn, overview.taken_at)
        (running,) = await self._queries.read_running(stale_limit=self._stale_limit).fetch_all(conn)
        late_writes = await self._queries.read_late_writes().fetch_one(conn)
        alive = [worker for worker in overview.workers if worker.stopped_at is None and not worker.is_stale]
        turning = [loop for worker in alive for loop in worker.loops]
        turning += [loop for one in overview.supervisors if not one.is_stale for loop in one.loops]
        duties = await self._queries.read_duties().fetch_all(conn)
        leading = [loop for duty in duties if not duty.is_expired for loop in _loops_of(duty)]
        read_at = time.monotonic()
        return Reading(
            read_at=read_at,
            taken_at=overview.taken_at,
            seconds=read_at - began_at,
            queues=self._figures(overview, alive, totals.items()),
            workers_alive=len(alive),
            late_writes=late_writes or 0,
            without_owner=running.without_owner,
            oldest_running_age=running.oldest_age,
            loops=LoopFigures.merged(LoopFigures.by_name(turning), LoopFigures.by_name(leading)),
        )

    def _figures(
        self, overview: Overview, alive: Iterable[WorkerView], totals: Iterable[tuple[str, Totals]]
    ) -> dict[str, QueueFigures]:
        """Every label that was ever taken up, with zeros where there is nothing."""
        figures = {name: QueueFigures() for name in self._labels.names}
        found = [(self._labels.of(view.name), _now(view, alive)) for view in overview.queues]
        found += [(label, QueueFigures(totals=of_label)) for label, of_label in totals]
        for label, part in found:
            figures[label] = figures.get(label, QueueFigures()) + part
        return figures


def _loops_of(duty: DutyRow) -> tuple[LoopHealth, ...]:
    return decode_loops(duty.loops, since=duty.renewed_age)


def _now(view: QueueView, alive: Iterable[WorkerView]) -> QueueFigures:
    return QueueFigures(
        depths=Depths(view.pending, view.scheduled, view.waiting, Count(view.running), view.dead),
        oldest_pending_at=view.oldest_pending_at,
        is_paused=view.paused,
        workers=sum(1 for worker in alive if view.name in worker.queues),
        capacity=view.capacity,
    )
