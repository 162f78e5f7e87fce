"""Statements that keep the queue healthy: workers and their beats, promotion, recovery, retention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from pgq_core.queries.arrays import Int8Array, text_literal
from pgq_core.queries.claims import ClaimedRow
from pgq_core.queries.orphans import OrphanRow
from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """`is_cancelled`: it was cancelled while it waited in a worker's hands, and ended."""

    id: int
    is_cancelled: bool


@dataclass(frozen=True, slots=True)
class ClaimRow:
    id: int
    claim_token: int


class PromotedRow(NamedTuple):
    """`next_due_in`: seconds until the next scheduled job is due, None when none is scheduled."""

    promoted: int
    next_due_in: float | None
    woken: int


@dataclass(frozen=True, slots=True)
class Beat:
    """What a keeper says of one worker with each beat."""

    id: str
    pid: int | None
    state: str
    running: int = 0
    finished: int = 0
    failed: int = 0
    late_writes: int = 0
    cpu_percent: float | None = None
    rss_bytes: int | None = None
    loops: str | None = None
    """JSON text: how its inner loops do, see `domain.health`."""


@dataclass(frozen=True, slots=True)
class BeatRow:
    """The answer to a beat: what an operator wants of this worker. `wanted` None: its row is gone, ended or locked."""

    id: str
    wanted: str | None
    is_ended: bool
    is_locked: bool
    """By somebody's open transaction: neither beaten nor gone."""


@dataclass(frozen=True, slots=True)
class DoomedRow:
    """A waiting job that can never run, taken to be buried."""

    id: int
    claim_token: int
    queue: str
    job_type: str
    last_error: str | None


@dataclass(frozen=True, slots=True)
class AnnouncedType:
    """What a worker knows about a job type. `model`: JSON Schema as text."""

    name: str
    queue: str | None
    model: str | None
    max_attempts: int | None
    timeout: timedelta | None
    backoff_base: timedelta
    backoff_cap: timedelta


@dataclass(frozen=True, slots=True)
class PartitionRow:
    name: str
    is_attached: bool
    is_detach_pending: bool


@dataclass(frozen=True, slots=True)
class DeadRowsRow:
    """The `jobs` table by the server's estimates: rows, and bytes without indexes."""

    dead: int
    live: int
    bytes: int
    may_vacuum: bool


class UpkeepQueries(QueryGroup):
    def wake_channel(self) -> Statement[str]:
        return self._statement("wake_channel", str)

    # A worker's life

    def register_worker(
        self,
        *,
        worker_id: str,
        host: str,
        pool: str | None,
        supervisor_id: str | None,
        queues: Sequence[str],
        concurrency: int,
        version: str,
    ) -> Statement[int]:
        """Answers the worker's statistics slot."""
        return self._statement(
            "register_worker",
            int,
            worker_id=worker_id,
            host=host,
            pool=pool,
            supervisor_id=supervisor_id,
            queues=list(queues),
            concurrency=concurrency,
            version=version,
        )

    def announce_worker(self, *, worker_id: str, pid: int, job_types: Sequence[str]) -> Statement[None]:
        return self._statement("announce_worker", worker_id=worker_id, pid=pid, job_types=list(job_types))

    def announce_types(self, types: Sequence[AnnouncedType]) -> Statement[None]:
        return self._statement(
            "announce_types",
            names=[t.name for t in types],
            queues=[t.queue for t in types],
            models=[t.model for t in types],
            max_attempts=[t.max_attempts for t in types],
            timeouts=[t.timeout for t in types],
            backoff_bases=[t.backoff_base for t in types],
            backoff_caps=[t.backoff_cap for t in types],
        )

    def beat_workers(self, beats: Sequence[Beat]) -> Statement[BeatRow]:
        return self._statement(
            "beat_workers",
            BeatRow,
            ids=[b.id for b in beats],
            pids=[b.pid for b in beats],
            states=[b.state for b in beats],
            running=[b.running for b in beats],
            finished=[b.finished for b in beats],
            failed=[b.failed for b in beats],
            late_writes=[b.late_writes for b in beats],
            cpu_percents=[b.cpu_percent for b in beats],
            rss_bytes=[b.rss_bytes for b in beats],
            loops=[b.loops for b in beats],
        )

    def end_worker(
        self,
        *,
        worker_id: str,
        state: str,
        exit_code: int | None,
        exit_signal: str | None,
        exit_reason: str | None,
        last_output: str | None,
        finished: int,
        failed: int,
        late_writes: int,
    ) -> Statement[None]:
        return self._statement(
            "end_worker",
            worker_id=worker_id,
            state=state,
            exit_code=exit_code,
            exit_signal=exit_signal,
            exit_reason=exit_reason,
            last_output=last_output,
            finished=finished,
            failed=failed,
            late_writes=late_writes,
        )

    def set_waiting(self, *, worker_id: str, waiting: bool) -> Statement[None]:
        return self._statement("set_waiting", worker_id=worker_id, waiting=waiting)

    # Claims that need more than claim_jobs

    def claim_suspect_job(
        self, *, queues: Sequence[str], worker_id: str, job_types: Sequence[str], except_jobs: Sequence[int] = ()
    ) -> Statement[ClaimedRow]:
        return self._statement(
            "claim_suspect_job",
            ClaimedRow,
            queues=list(queues),
            worker_id=worker_id,
            job_types=list(job_types),
            except_jobs=list(except_jobs),
        )

    def list_claimable_jobs(
        self,
        *,
        queues: Sequence[str],
        job_types: Sequence[str],
        suspect: bool,
        limit: int,
        except_jobs: Sequence[int] = (),
    ) -> Statement[int]:
        """Their ids, in claim order within a queue."""
        return self._statement(
            "list_claimable_jobs",
            int,
            queues=list(queues),
            job_types=list(job_types),
            suspect=suspect,
            limit=limit,
            except_jobs=list(except_jobs),
        )

    def claim_listed_jobs(self, ids: Sequence[int], *, worker_id: str) -> Statement[ClaimedRow]:
        return self._statement("claim_listed_jobs", ClaimedRow, ids=list(ids), worker_id=worker_id)

    def has_due_suspect(
        self, *, queues: Sequence[str], job_types: Sequence[str], except_jobs: Sequence[int] = ()
    ) -> Statement[bool]:
        return self._statement(
            "has_due_suspect", bool, queues=list(queues), job_types=list(job_types), except_jobs=list(except_jobs)
        )

    def release_jobs(self, claims: Sequence[tuple[int, int]]) -> Statement[ReleasedRow]:
        """`claims`: (id, token) of jobs that have not started."""
        return self._statement(
            "release_jobs", ReleasedRow, ids=[job_id for job_id, _ in claims], tokens=[token for _, token in claims]
        )

    def list_locked_jobs(self, job_ids: Sequence[int]) -> Statement[int]:
        return self._statement("list_locked_jobs", int, ids=list(job_ids))

    def list_claims(self, *, worker_id: str, after: int) -> Statement[ClaimRow]:
        """`after`: a claim token."""
        return self._statement("list_claims", ClaimRow, worker_id=worker_id, after=after)

    def list_cancel_requests(self, *, worker_id: str, ids: Sequence[int]) -> Statement[int]:
        """Those of the worker's jobs that were asked to stop."""
        return self._statement("list_cancel_requests", int, worker_id=worker_id, ids=Int8Array(ids))

    # Promotion

    def promote_due_jobs(
        self, *, queues: Sequence[str], limit: int, except_worker: str | None = None, except_jobs: Sequence[int] = ()
    ) -> Statement[PromotedRow]:
        """`except_worker`: the caller, which is awake and needs no notification."""
        return self._statement(
            "promote_due_jobs",
            PromotedRow,
            queues=text_literal(tuple(queues)),
            limit=limit,
            except_worker=except_worker or "",
            except_jobs=Int8Array(except_jobs),
        )

    def list_due_jobs(self, *, queues: Sequence[str], limit: int, except_jobs: Sequence[int] = ()) -> Statement[int]:
        """Ids of scheduled jobs."""
        return self._statement("list_due_jobs", int, queues=list(queues), limit=limit, except_jobs=list(except_jobs))

    def promote_listed_jobs(self, ids: Sequence[int]) -> Statement[None]:
        return self._statement("promote_listed_jobs", ids=list(ids))

    def list_scheduled_queues(self) -> Statement[str]:
        return self._statement("list_scheduled_queues", str)

    # Recovery

    def lock_claims_of_worker(self, *, worker_id: str) -> Statement[OrphanRow]:
        return self._statement("lock_claims_of_worker", OrphanRow, worker_id=worker_id)

    def lock_free_claims_of_worker(self, *, worker_id: str) -> Statement[OrphanRow]:
        """Those that nobody else has locked."""
        return self._statement("lock_free_claims_of_worker", OrphanRow, worker_id=worker_id)

    def mark_lost_workers(self, *, stale_limit: timedelta) -> Statement[str]:
        """Rows: the ids of the workers that were taken for lost just now."""
        return self._statement("mark_lost_workers", str, stale_limit=stale_limit)

    def lock_lost_jobs(
        self, *, stale_limit: timedelta, limit: int, except_jobs: Sequence[int] = ()
    ) -> Statement[OrphanRow]:
        return self._statement(
            "lock_lost_jobs", OrphanRow, stale_limit=stale_limit, limit=limit, except_jobs=list(except_jobs)
        )

    def complete_claims(self, ids: Sequence[int]) -> Statement[int]:
        """Rows: those of the running jobs that lacked their token or the time of their claim."""
        return self._statement("complete_claims", int, ids=list(ids))

    def claim_spent_jobs(self, *, holder: str, limit: int, except_jobs: Sequence[int] = ()) -> Statement[DoomedRow]:
        return self._statement("claim_spent_jobs", DoomedRow, holder=holder, limit=limit, except_jobs=list(except_jobs))

    def claim_unknown_jobs(
        self, *, holder: str, after: timedelta, limit: int, except_jobs: Sequence[int] = ()
    ) -> Statement[DoomedRow]:
        return self._statement(
            "claim_unknown_jobs", DoomedRow, holder=holder, after=after, limit=limit, except_jobs=list(except_jobs)
        )

    # Duties

    def acquire_lease(self, *, name: str, holder: str, duration: timedelta, loops: str | None = None) -> Statement[str]:
        """One row when the duty is the holder's now."""
        return self._statement("acquire_lease", str, name=name, holder=holder, duration=duration, loops=loops)

    def give_up_lease(self, *, name: str, holder: str) -> Statement[None]:
        return self._statement("give_up_lease", name=name, holder=holder)

    def set_key_window(self, *, seconds: float) -> Statement[None]:
        return self._statement("set_key_window", seconds=f"{seconds:g}")

    # Retention

    def ensure_partitions(self, *, days_ahead: int, from_epoch: float | None = None) -> Statement[int]:
        """`from_epoch`: seconds of the earliest start that needs a place; None: now. Answers how many were made."""
        return self._statement("ensure_partitions", int, days_ahead=days_ahead, from_epoch=from_epoch)

    def list_pending_detaches(self) -> Statement[str]:
        """Names of partitions."""
        return self._statement("list_pending_detaches", str, schema=self.schema)

    def list_expired_partitions(self, *, kept: timedelta) -> Statement[PartitionRow]:
        return self._statement("list_expired_partitions", PartitionRow, schema=self.schema, kept=kept)

    def drop_run_partition(self, *, kept: timedelta) -> Statement[str | None]:
        """Answers the name of the partition, None when none is past retention."""
        return self._statement("drop_run_partition", kept=kept)

    def read_dead_rows(self) -> Statement[DeadRowsRow]:
        return self._statement("read_dead_rows", DeadRowsRow, schema=self.schema)

    def prune_dead_letters(self, *, kept: timedelta, limit: int) -> Statement[None]:
        return self._statement("prune_dead_letters", kept=kept, limit=limit)

    def prune_keys(self, *, limit: int) -> Statement[None]:
        return self._statement("prune_keys", limit=limit)

    def release_orphan_keys(self, *, after: str, limit: int) -> Statement[str]:
        """Looks at the next `limit` keys; rows: the last key it looked at, none at the end of the table."""
        return self._statement("release_orphan_keys", str, after=after, limit=limit)

    def prune_workers(self, *, kept: timedelta, keep: int) -> Statement[None]:
        return self._statement("prune_workers", kept=kept, keep=keep)

    def prune_waits(self) -> Statement[None]:
        return self._statement("prune_waits")

    def roll_up_stats(self, *, step: timedelta, older_than: timedelta, limit: int) -> Statement[int]:
        """Answers how many rows were summed up; fewer than `limit` means that the work is done."""
        return self._statement("roll_up_stats", int, step=step, older_than=older_than, limit=limit)

    def prune_stats(self, *, kept: timedelta, limit: int) -> Statement[None]:
        return self._statement("prune_stats", kept=kept, limit=limit)
