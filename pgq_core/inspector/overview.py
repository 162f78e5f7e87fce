"""One tick of the dashboard: five short statements in two round trips."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.snapshot import DEPTH_CAP, Count, Overview, ServerView
from pgq_core.domain.window import SMALLEST_STEP, bucket_step
from pgq_core.inspector.depth_memory import Depth, DepthMemory, counted_rows
from pgq_core.inspector.stats_memory import StatsMemory
from pgq_core.inspector.together import fetch_together
from pgq_core.inspector.views import QueueFacts, pool_views, queue_views, supervisor_views
from pgq_core.queries import Queries
from pgq_core.queries.reads import QueueRow, ServerRow

MOST_QUEUES = 500
MOST_WORKERS = 500
ENDED_WORKERS_SHOWN = timedelta(minutes=10)

_RECENT = timedelta(minutes=15)
_LEAST_PAUSE = timedelta(seconds=10)


class OverviewReader:
    """Reads tick after tick, and remembers of the last ones what need not be read again."""

    def __init__(self, queries: Queries, stale_limit: timedelta) -> None:
        self._queries = queries
        self._stale_limit = stale_limit
        self._depths = DepthMemory()
        self._recent = StatsMemory(_RECENT, SMALLEST_STEP)
        self._charted = self._recent

    async def read(self, conn: AsyncConnection[Any], window: timedelta) -> Overview:
        server, ping = await self._read_server(conn)
        now = server.taken_at
        chart = self._chart_of(window)
        stats = [(memory, since) for memory in {self._recent, chart} if (since := memory.wanted_since(now))]
        skipped = {state: self._depths.deep(state, now) for state in Depth}
        queues, worker_rows, pools, *stats_rows = await fetch_together(
            conn,
            self._queries.read_queues(
                cap=DEPTH_CAP,
                most=MOST_QUEUES,
                deep_pending=skipped[Depth.PENDING],
                deep_scheduled=skipped[Depth.SCHEDULED],
                deep_waiting=skipped[Depth.WAITING],
                deep_dead=skipped[Depth.DEAD],
            ),
            self._queries.read_workers(
                stale_limit=self._stale_limit, ended_within=ENDED_WORKERS_SHOWN, limit=MOST_WORKERS
            ),
            self._queries.read_pools(stale_limit=self._stale_limit, limit=MOST_WORKERS),
            *(self._queries.read_stats(since=since, step=memory.step) for memory, since in stats),
        )
        for (memory, since), rows in zip(stats, stats_rows, strict=True):
            memory.learn(since, now, rows)
        await self._estimate_deep_queues(conn, queues, now)
        workers = tuple(row.to_view() for row in worker_rows)
        views = queue_views(QueueFacts(now, queues, workers, skipped), self._depths, self._recent)
        return Overview(
            taken_at=now,
            server=_server_view(server, conn, ping),
            queues=views,
            workers=workers,
            pools=pool_views(pools),
            supervisors=supervisor_views(pools),
            throughput=chart.points(now=now, window=window),
            dead_unresolved=reduce(add, (view.dead for view in views), Count(0)),
            inserted_total=server.inserted_total,
            holder_age=server.holder_age,
            holder=server.holder,
        )

    async def _read_server(self, conn: AsyncConnection[Any]) -> tuple[ServerRow, float]:
        """The server's facts, and how long it took to hear them."""
        asked_at = time.monotonic()
        (server,) = await self._queries.read_server().fetch_all(conn)
        return server, time.monotonic() - asked_at

    def _chart_of(self, window: timedelta) -> StatsMemory:
        """A window within the recent buckets needs no reads of its own; a longer one is read less often."""
        step = bucket_step(window)
        if step == SMALLEST_STEP and window <= _RECENT:
            return self._recent
        if (self._charted.span, self._charted.step) != (window, step):
            self._charted = StatsMemory(window, step, pause=max(_LEAST_PAUSE, step / 6))
        return self._charted

    async def _estimate_deep_queues(
        self, conn: AsyncConnection[Any], queues: Sequence[QueueRow], now: datetime
    ) -> None:
        """Only when a queue was just counted up to the cap: at most once per queue in ten seconds."""
        if any(counted_rows(row, state) > DEPTH_CAP for row in queues for state in Depth):
            estimates = await self._queries.estimate_depths().fetch_all(conn)
            self._depths.learn_estimates(queues, estimates, now)


def _server_view(server: ServerRow, conn: AsyncConnection[Any], ping: float) -> ServerView:
    return ServerView(
        version=server.version,
        database=server.database,
        user=server.user,
        host=conn.info.host,
        ping=ping,
        is_read_only=server.is_read_only,
        waits_for_disk=server.waits_for_disk,
    )
