"""Puts the rows of one tick together. Pure: what was read goes in, an immutable picture comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.domain.audit import Audit
from pgq_core.domain.snapshot import Count, PoolView, QueueView, SupervisorView, WorkerView
from pgq_core.domain.window import SMALLEST_STEP, bucket_start
from pgq_core.inspector.depth_memory import Depth, DepthMemory
from pgq_core.inspector.stats_memory import StatsMemory
from pgq_core.queries.reads import PoolRow, QueueRow, beaten_loops

RATE_SPAN = timedelta(seconds=60)
TREND_SPAN = timedelta(minutes=15)
TREND_STEP = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """What the views of all queues are made of."""

    now: datetime
    rows: Sequence[QueueRow]
    workers: Sequence[WorkerView]
    skipped: Mapping[Depth, Sequence[str]]


def queue_views(facts: QueueFacts, depths: DepthMemory, stats: StatsMemory) -> tuple[QueueView, ...]:
    counts = {row.name: _counts(row, facts.skipped, depths) for row in facts.rows}
    depths.remember(facts.now, _exact_depths(facts.rows, counts))
    return tuple(_queue_view(row, counts[row.name], facts, depths, stats) for row in facts.rows)


def _counts(row: QueueRow, skipped: Mapping[Depth, Sequence[str]], depths: DepthMemory) -> dict[Depth, Count]:
    return {state: depths.count(row, state, skipped=skipped.get(state, ())) for state in Depth}


def _exact_depths(rows: Iterable[QueueRow], counts: Mapping[str, Mapping[Depth, Count]]) -> dict[str, int]:
    live = (Depth.PENDING, Depth.SCHEDULED, Depth.WAITING)
    totals = {row.name: sum((counts[row.name][state] for state in live), Count(row.running)) for row in rows}
    return {name: total.value for name, total in totals.items() if total.exact}


def _queue_view(
    row: QueueRow, counts: Mapping[Depth, Count], facts: QueueFacts, depths: DepthMemory, stats: StatsMemory
) -> QueueView:
    edge = bucket_start(facts.now, SMALLEST_STEP) - RATE_SPAN
    sums = stats.over(edge, queue=row.name)
    scheduled = counts[Depth.SCHEDULED]
    return QueueView(
        name=row.name,
        paused=row.paused,
        paused_at=row.paused_at,
        paused_by=row.paused_by,
        pause_reason=row.pause_reason,
        audit=Audit(row.audit),
        audit_sample=row.audit_sample,
        pending=counts[Depth.PENDING],
        scheduled=scheduled,
        retrying=Count(row.retrying, exact=scheduled.exact),
        waiting=counts[Depth.WAITING],
        running=row.running,
        capacity=sum(worker.concurrency for worker in _serving(row.name, facts.workers) if worker.state != "draining"),
        dead=counts[Depth.DEAD],
        oldest_pending_at=row.oldest_pending_at,
        rate_out=sums.finished / (facts.now - edge).total_seconds(),
        rate_in=_inflow(row.name, facts.now, depths, stats),
        failure_share=sums.failure_share,
        p50=sums.percentile(0.5),
        p95=sums.percentile(0.95),
        last_error=row.last_error,
        unknown_types=unknown_types(row, facts.workers),
        trend=tuple(
            count / TREND_STEP.total_seconds()
            for count in stats.finished_per_bucket(row.name, now=facts.now, span=TREND_SPAN, step=TREND_STEP)
        ),
    )


def _inflow(queue: str, now: datetime, depths: DepthMemory, stats: StatsMemory) -> float | None:
    """Derived: what the queue grew by, and what left it for good meanwhile."""
    growth = depths.growth(queue, now)
    if growth is None:
        return None
    since, grown = growth
    left = stats.over(bucket_start(since, SMALLEST_STEP), queue=queue).left_for_good
    return max(0.0, grown + left) / (now - since).total_seconds()


def unknown_types(row: QueueRow, workers: Sequence[WorkerView]) -> tuple[str, ...]:
    """Types at the front of the queue that none of the live workers serving it knows; nothing when none serves it."""
    announced = [worker for worker in _serving(row.name, workers) if worker.job_types]
    if not announced:
        return ()
    known = {job_type for worker in announced for job_type in worker.job_types}
    return tuple(job_type for job_type in row.job_types if job_type not in known)


def _serving(queue: str, workers: Sequence[WorkerView]) -> list[WorkerView]:
    return [w for w in workers if w.stopped_at is None and not w.is_stale and queue in w.queues]


def pool_views(rows: Iterable[PoolRow]) -> tuple[PoolView, ...]:
    return tuple(_pool_view(row, row.name) for row in rows if row.name is not None)


def _pool_view(row: PoolRow, name: str) -> PoolView:
    return PoolView(
        host=row.host,
        name=name,
        queues=tuple(row.queues or ()),
        concurrency=row.concurrency or 0,
        wanted=row.wanted or 0,
        minimum=row.minimum or 0,
        maximum=row.maximum or 0,
        state=row.state or "ok",
        state_detail=row.state_detail,
        retry_at=row.retry_at,
        restarts=row.restarts or 0,
        alive=row.alive,
        draining=row.draining,
        has_supervisor=row.supervisor_id is not None and not row.supervisor_is_stale and name in (row.pools or ()),
    )


def supervisor_views(rows: Iterable[PoolRow]) -> tuple[SupervisorView, ...]:
    """One per host, although a host has a row for each of its pools."""
    return tuple({row.host: view for row in rows if (view := _supervisor_view(row))}.values())


def _supervisor_view(row: PoolRow) -> SupervisorView | None:
    if row.supervisor_id is None or row.pid is None or row.started_at is None or row.heartbeat_at is None:
        return None
    return SupervisorView(
        host=row.host,
        supervisor_id=row.supervisor_id,
        pid=row.pid,
        pools=tuple(row.pools or ()),
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        is_stale=bool(row.supervisor_is_stale),
        stopping=bool(row.stopping),
        loops=beaten_loops(row.supervisor_loops, age=row.beat_age or 0.0, limit=row.beat_limit),
    )
