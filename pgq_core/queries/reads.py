"""Statements of the overview and of checks: few, cheap, none of them reads a payload or scans a table that grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg import sql

from pgq_core.domain.health import LoopHealth, decode_loops
from pgq_core.domain.job import JSON
from pgq_core.domain.snapshot import WorkerView
from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class ServerRow:
    taken_at: datetime
    version: str
    database: str
    user: str
    is_read_only: bool
    waits_for_disk: bool
    inserted_total: int | None
    holder_age: float | None
    holder: str | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue. Counts (`running` apart) go up to one past the cap; a count that was not asked for is 0."""

    name: str
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    audit: str
    audit_sample: float | None
    pending: int
    scheduled: int
    retrying: int
    waiting: int
    running: int
    dead: int
    oldest_pending_at: datetime | None
    job_types: list[str]
    last_error: str | None


@dataclass(frozen=True, slots=True)
class DepthEstimateRow:
    """About how many rows are in one state, and which share of the table the common queues have."""

    state: str
    total: int
    queues: list[str]
    shares: list[float]


@dataclass(frozen=True, slots=True)
class StatsRow:
    """Runs that finished in one bucket. `dropped`: cancelled, discarded, expired. `put_back`: released, snoozed."""

    at: datetime
    queue: str
    succeeded: int
    retried: int
    dead: int
    lost: int
    dropped: int
    put_back: int
    durations: list[int]


@dataclass(frozen=True, slots=True)
class WorkerRow:
    id: str
    host: str
    pid: int | None
    pool: str | None
    supervisor_id: str | None
    queues: list[str]
    job_types: list[str]
    concurrency: int
    state: str
    wanted: str
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None
    exit_code: int | None
    exit_signal: str | None
    exit_reason: str | None
    running: int
    finished: int
    failed: int
    late_writes: int
    cpu_percent: float | None
    rss_bytes: int | None
    is_stale: bool
    version: str | None
    loops: JSON
    beat_age: float
    beat_limit: float

    def to_view(self) -> WorkerView:
        return WorkerView(
            id=self.id,
            host=self.host,
            pid=self.pid,
            pool=self.pool,
            supervisor_id=self.supervisor_id,
            queues=tuple(self.queues),
            job_types=tuple(self.job_types),
            concurrency=self.concurrency,
            state=self.state,
            wanted=self.wanted,
            started_at=self.started_at,
            heartbeat_at=self.heartbeat_at,
            stopped_at=self.stopped_at,
            exit_code=self.exit_code,
            exit_signal=self.exit_signal,
            exit_reason=self.exit_reason,
            running=self.running,
            finished=self.finished,
            failed=self.failed,
            late_writes=self.late_writes,
            cpu_percent=self.cpu_percent,
            rss_bytes=self.rss_bytes,
            is_stale=self.is_stale,
            version=self.version,
            loops=() if self.stopped_at else beaten_loops(self.loops, age=self.beat_age, limit=self.beat_limit),
        )


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool with the supervisor of its host; either side may be missing (all None)."""

    host: str
    name: str | None
    queues: list[str] | None
    concurrency: int | None
    wanted: int | None
    minimum: int | None
    maximum: int | None
    state: str | None
    state_detail: str | None
    retry_at: datetime | None
    restarts: int | None
    alive: int
    draining: int
    supervisor_id: str | None
    pid: int | None
    pools: list[str] | None
    started_at: datetime | None
    heartbeat_at: datetime | None
    stopping: bool | None
    supervisor_is_stale: bool | None
    supervisor_loops: JSON
    beat_age: float | None
    beat_limit: float


@dataclass(frozen=True, slots=True)
class DutyRow:
    """Who does the maintenance. `renewed_age`: seconds since the lease was renewed last."""

    name: str
    holder: str
    is_expired: bool
    loops: JSON
    renewed_age: float


@dataclass(frozen=True, slots=True)
class HealthRow:
    """`missing_rights` as "PRIVILEGE table"; `days_ahead`: days from today on that have a partition for their runs.

    `forgetful_settings` are off, so that a crash may lose commits. `silent_triggers`: "NAME of TABLE", do not fire.
    """

    clock: float
    backend_pid: int
    server_version: int
    max_connections: int
    connections: int
    forgetful_settings: list[str]
    silent_triggers: list[str]
    missing_rights: list[str]
    live_rows: int
    dead_rows: int
    vacuumed_at: datetime | None
    days_ahead: int
    live_workers: int


class ReadQueries(QueryGroup):
    def read_server(self) -> Statement[ServerRow]:
        jobs = sql.Identifier(self.schema, "jobs").as_string(None)
        return self._statement("read_server", ServerRow, jobs=jobs)

    def read_queues(
        self,
        *,
        cap: int,
        most: int,
        deep_pending: Sequence[str] = (),
        deep_scheduled: Sequence[str] = (),
        deep_waiting: Sequence[str] = (),
        deep_dead: Sequence[str] = (),
    ) -> Statement[QueueRow]:
        """At most `most` queues, each counted up to `cap` + 1; the `deep_*` ones are not counted."""
        return self._statement(
            "read_queues",
            QueueRow,
            cap=cap,
            most=most,
            deep_pending=list(deep_pending),
            deep_scheduled=list(deep_scheduled),
            deep_waiting=list(deep_waiting),
            deep_dead=list(deep_dead),
        )

    def estimate_depths(self) -> Statement[DepthEstimateRow]:
        return self._statement("estimate_depths", DepthEstimateRow, schema_name=self.schema)

    def read_stats(self, *, since: datetime, step: timedelta) -> Statement[StatsRow]:
        return self._statement("read_stats", StatsRow, since=since, step=step)

    def read_workers(self, *, stale_limit: timedelta, ended_within: timedelta, limit: int) -> Statement[WorkerRow]:
        return self._statement(
            "read_workers", WorkerRow, stale_limit=stale_limit, ended_within=ended_within, limit=limit
        )

    def read_worker_output(self, *, worker_id: str) -> Statement[str]:
        return self._statement("read_worker_output", str, worker_id=worker_id)

    def read_pools(self, *, stale_limit: timedelta, limit: int) -> Statement[PoolRow]:
        return self._statement("read_pools", PoolRow, stale_limit=stale_limit, limit=limit)

    def read_duties(self) -> Statement[DutyRow]:
        return self._statement("read_duties", DutyRow)

    def read_health(self, *, stale_limit: timedelta) -> Statement[HealthRow]:
        return self._statement("read_health", HealthRow, schema_name=self.schema, stale_limit=stale_limit)


def beaten_loops(loops: JSON, *, age: float, limit: float) -> tuple[LoopHealth, ...]:
    """The loops that a beat told of, and the beats themselves, which are one loop more."""
    return (LoopHealth("heartbeat", max(age, 0.0), limit), *decode_loops(loops, since=age))
