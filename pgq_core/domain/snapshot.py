"""What the read side answers: immutable pictures of queues, workers, runs and dead letters."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pgq_core.domain.audit import Audit
from pgq_core.domain.health import LoopHealth
from pgq_core.domain.job import JSON

DEPTH_CAP = 10_000
"""Counts are exact up to here; above, they are an estimate and marked so."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows: exact, or "at least"/"about" when `exact` is False."""

    value: int
    exact: bool = True

    def __add__(self, other: Count) -> Count:
        return Count(self.value + other.value, self.exact and other.exact)


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue. Rates are per second over the last minute; times in seconds; None where nothing is known."""

    name: str
    paused: bool = False
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    audit: Audit = Audit.ALL
    audit_sample: float | None = None
    """The share of plain successes that is kept; None where no sample is taken."""
    pending: Count = Count(0)
    scheduled: Count = Count(0)
    retrying: Count = Count(0)
    waiting: Count = Count(0)
    running: int = 0
    capacity: int = 0
    dead: Count = Count(0)
    oldest_pending_at: datetime | None = None
    rate_out: float = 0.0
    rate_in: float | None = None
    failure_share: float | None = None
    p50: float | None = None
    p95: float | None = None
    last_error: str | None = None
    unknown_types: tuple[str, ...] = ()
    trend: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker process, live or recently ended."""

    id: str
    host: str
    pid: int | None
    pool: str | None
    supervisor_id: str | None
    queues: tuple[str, ...]
    job_types: tuple[str, ...]
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
    version: str | None = None
    loops: tuple[LoopHealth, ...] = ()
    """Its inner loops and those of its keeper, as old as they are by now; empty once it has ended."""

    @property
    def stalled_loops(self) -> tuple[LoopHealth, ...]:
        """Loops that have stopped turning."""
        return tuple(loop for loop in self.loops if loop.is_stalled)

    @property
    def runs(self) -> int:
        """Attempts that ended here; `finished` counts those that ended well."""
        return self.finished + self.failed


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool's wanted and actual number on its host."""

    host: str
    name: str
    queues: tuple[str, ...]
    concurrency: int
    wanted: int
    minimum: int
    maximum: int
    state: str
    state_detail: str | None
    retry_at: datetime | None
    restarts: int
    alive: int
    draining: int
    has_supervisor: bool


@dataclass(frozen=True, slots=True)
class SupervisorView:
    host: str
    supervisor_id: str
    pid: int
    pools: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime
    is_stale: bool
    stopping: bool
    loops: tuple[LoopHealth, ...] = ()

    @property
    def stalled_loops(self) -> tuple[LoopHealth, ...]:
        """Loops that have stopped turning."""
        return tuple(loop for loop in self.loops if loop.is_stalled)


@dataclass(frozen=True, slots=True)
class StatsPoint:
    """Finished runs of one time bucket, all queues (or one), summed."""

    at: datetime
    seconds: float
    succeeded: int = 0
    retried: int = 0
    dead: int = 0
    lost: int = 0
    other: int = 0
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """One closed run of `job_runs`."""

    id: int
    job_id: int
    worker_id: str
    queue: str | None
    job_type: str | None
    attempt: int
    outcome: str
    started_at: datetime
    finished_at: datetime
    error: str | None = None
    error_class: str | None = None
    due_at: datetime | None = None
    enqueued_at: datetime | None = None
    replayed_from: int | None = None

    @property
    def duration(self) -> timedelta:
        return self.finished_at - self.started_at


@dataclass(frozen=True, slots=True)
class RunDetail:
    """One run with all that was written down. `result_text`: JSON, cut when it has less than `result_size` bytes."""

    run: RunView
    traceback: str | None
    result_text: str | None
    result_size: int


@dataclass(frozen=True, slots=True)
class RunningView:
    """A job that runs now (a row of `jobs`)."""

    job_id: int
    queue: str
    job_type: str
    worker_id: str
    attempt: int
    max_attempts: int
    locked_at: datetime
    cancel_requested: bool
    is_orphan: bool


@dataclass(frozen=True, slots=True)
class JobView:
    """A live row of `jobs`, without its payload."""

    id: int
    queue: str
    job_type: str
    status: str
    priority: int
    attempts: int
    max_attempts: int
    not_before: datetime
    created_at: datetime
    locked_by: str | None
    idempotency_key: str | None
    last_error: str | None
    waiting_for: str | None
    no_worker_knows_type: bool = False
    """Live workers serve its queue, but none of them knows the type: it waits until one does."""


@dataclass(frozen=True, slots=True)
class JobCursor:
    """The last job of a page: where the next page of the same list begins."""

    id: int
    queue: str
    priority: int
    not_before: datetime
    waiting_for: str | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of live jobs; `next` is None on the last one."""

    jobs: tuple[JobView, ...]
    next: JobCursor | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterView:
    """A row of `dead_letter_jobs` as a list shows it: no payload, no traceback, errors cut."""

    id: int
    original_job_id: int
    queue: str
    job_type: str | None
    reason: str
    error_class: str | None
    last_error: str
    attempts: int
    max_attempts: int
    fingerprint: str | None
    last_worker: str | None
    died_at: datetime
    resolution: str | None = None
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    replayed_job_id: int | None = None
    replayed_from: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterDetail:
    """All that is known of one dead letter. `payload_text`: JSON, cut when it has less than `payload_size` bytes."""

    letter: DeadLetterView
    priority: int
    idempotency_key: str | None
    created_at: datetime | None
    traceback: str | None
    payload_text: str
    payload_size: int
    attempt_log: JSON
    note: str | None
    follow_up: str | None = None
    """Where the replayed job stands now: its status or final outcome."""
    original_payload_text: str | None = None
    """What the payload was before an operator edited it; None when nobody did."""


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A live job with what lists leave out. `payload_text`: JSON, cut when it has less than `payload_size` bytes."""

    job: JobView
    payload_text: str
    payload_size: int
    locked_at: datetime | None
    lease_until: datetime | None
    timeout: timedelta | None
    losses: int
    is_suspect: bool
    cancel_requested: bool
    origin_job_id: int | None
    replayed_from: int | None
    no_worker_serves_queue: bool = False
    is_queue_paused: bool = False


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Everything known about one job, in whatever state it is. `state` is its status, or its final outcome."""

    id: int
    state: str
    live: LiveJob | None
    runs: tuple[RunView, ...]
    dead_letters: tuple[DeadLetterView, ...]
    replayed_from: int | None
    """The dead letter that this job is a replay of."""


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters of one kind of failure."""

    fingerprint: str | None
    job_type: str | None
    queue: str
    error_class: str | None
    sample_error: str
    count: Count
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ServerView:
    """The database as the console's header shows it. `waits_for_disk`: a commit that was answered survives a crash."""

    version: str
    database: str
    user: str
    host: str
    ping: float
    is_read_only: bool
    waits_for_disk: bool = True


@dataclass(frozen=True, slots=True)
class Overview:
    """One tick of the dashboard: everything read in one short transaction."""

    taken_at: datetime
    server: ServerView
    queues: tuple[QueueView, ...] = ()
    workers: tuple[WorkerView, ...] = ()
    pools: tuple[PoolView, ...] = ()
    supervisors: tuple[SupervisorView, ...] = ()
    throughput: tuple[StatsPoint, ...] = ()
    dead_unresolved: Count = field(default_factory=lambda: Count(0))
    inserted_total: int | None = None
    """Value of the id sequence: its growth is the inflow of all queues (derived)."""
    holder_age: float | None = None
    """Age in seconds of the oldest transaction that holds back vacuum, when over a minute."""
    holder: str | None = None
