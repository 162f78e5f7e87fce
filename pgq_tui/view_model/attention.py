"""What needs an operator's attention: plain rules over one picture of the system, each with a place to go to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from pgq_core.domain.health import LoopHealth
from pgq_core.domain.snapshot import DEPTH_CAP, Count, Overview, PoolView, WorkerView
from pgq_tui.view_model.figures import format_count, format_percent, plural
from pgq_tui.view_model.fleet import ended_workers, short_worker_id, worker_key
from pgq_tui.view_model.loop_health import stalled_words
from pgq_tui.view_model.times import format_coarse, format_until

MANY_FAILURES = 0.2
"""Share of failed runs from which a queue is in trouble."""
OLD_PENDING = timedelta(minutes=5)
RECENT_CRASH = timedelta(minutes=5)
DEATHS_WITHIN = timedelta(minutes=5)
OLD_SNAPSHOT = timedelta(minutes=5)


class Severity(IntEnum):
    """How bad it is; the worst comes first."""

    NOTICE = 1
    WARNING = 2
    CRITICAL = 3


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to look at. `screen` and `target` say where: `dead`, or `queues` and the name of one."""

    key: str
    severity: Severity
    subject: str
    text: str
    screen: str
    target: str = ""


def needs_attention(view: Overview) -> list[Attention]:
    """Everything that is not as it should be, the worst first; nothing when all is well."""
    found = [attention for rule in _RULES for attention in rule(view)]
    return sorted(found, key=lambda attention: -attention.severity)


def _read_only_server(view: Overview) -> Iterator[Attention]:
    if view.server.is_read_only:
        text = "takes no writes: a standby, or read-only by default; nothing can run"
        yield Attention("read-only", Severity.CRITICAL, "database", text, "dash")


def _forgetful_server(view: Overview) -> Iterator[Attention]:
    if not view.server.waits_for_disk:
        text = "synchronous_commit is off: a crash may lose accepted jobs"
        yield Attention("forgetful", Severity.WARNING, "database", text, "dash")


def _failing_queues(view: Overview) -> Iterator[Attention]:
    for queue in view.queues:
        share = queue.failure_share
        if share is not None and share >= MANY_FAILURES and not queue.paused:
            cause = f": {queue.last_error}" if queue.last_error else ""
            text = f"{format_percent(share)} fail{cause}"
            yield Attention(f"failing {queue.name}", Severity.CRITICAL, queue.name, text, "queues", queue.name)


def _crash_looping_pools(view: Overview) -> Iterator[Attention]:
    for pool in view.pools:
        if pool.state == "crash_loop":
            again = (pool.retry_at - view.taken_at).total_seconds() if pool.retry_at else None
            wait = f", next try {format_until(again)}" if again is not None else ""
            text = f"crash loop{wait}: {pool.state_detail or 'no reason known'}"
            yield Attention(f"loop {pool.host} {pool.name}", Severity.CRITICAL, *_place(pool, text))
        elif pool.state == "refused":
            text = f"refused by its host: {pool.state_detail or 'no reason known'}"
            yield Attention(f"refused {pool.host} {pool.name}", Severity.CRITICAL, *_place(pool, text))


def _short_pools(view: Overview) -> Iterator[Attention]:
    for pool in view.pools:
        staying = pool.alive - pool.draining
        if staying == pool.wanted or pool.state != "ok":
            continue
        if not pool.has_supervisor:
            text = f"has {staying} of {pool.wanted}, no supervisor: start pgq-tui supervise on {pool.host}"
            yield Attention(f"short {pool.host} {pool.name}", Severity.CRITICAL, *_place(pool, text))
        elif staying < pool.wanted:
            text = f"has {staying} of {pool.wanted} wanted workers"
            yield Attention(f"short {pool.host} {pool.name}", Severity.NOTICE, *_place(pool, text))


def _place(pool: PoolView, text: str) -> tuple[str, str, str, str]:
    return f"pool {pool.name}", text, "workers", f"pool {pool.host} {pool.name}"


def _unserved_queues(view: Overview) -> Iterator[Attention]:
    served = {queue for worker in view.workers if _is_live(worker) for queue in worker.queues}
    for queue in view.queues:
        if queue.pending.value and not queue.paused and not queue.unknown_types and queue.name not in served:
            text = f"no worker serves it, {_jobs(queue.pending)} waiting"
            yield Attention(f"unserved {queue.name}", Severity.CRITICAL, queue.name, text, "queues", queue.name)


def _unknown_types(view: Overview) -> Iterator[Attention]:
    for queue in view.queues:
        for name in queue.unknown_types:
            text = f"no worker knows {name}: pass its module to pgq-core worker --app"
            yield Attention(f"type {queue.name} {name}", Severity.WARNING, queue.name, text, "queues", queue.name)


def _paused_queues(view: Overview) -> Iterator[Attention]:
    for queue in view.queues:
        if queue.paused and queue.pending.value:
            since = f" {format_coarse(view.taken_at - queue.paused_at)}" if queue.paused_at else ""
            by = f" by {queue.paused_by}" if queue.paused_by else ""
            reason = f', "{queue.pause_reason}"' if queue.pause_reason else ""
            text = f"paused{since}{by}, {_jobs(queue.pending)} waiting{reason}"
            yield Attention(f"paused {queue.name}", Severity.WARNING, queue.name, text, "queues", queue.name)


def _old_jobs(view: Overview) -> Iterator[Attention]:
    for queue in view.queues:
        if queue.oldest_pending_at is None or queue.paused or queue.unknown_types:
            continue
        age = view.taken_at - queue.oldest_pending_at
        if age >= OLD_PENDING:
            text = f"oldest waits {format_coarse(age)}, {_jobs(queue.pending)} pending"
            yield Attention(f"old {queue.name}", Severity.WARNING, queue.name, text, "queues", queue.name)


def _growing_dead_letters(view: Overview) -> Iterator[Attention]:
    # The bucket that the limit falls into counts as a whole: what is left out could not be said in a round number.
    since = view.taken_at - DEATHS_WITHIN
    newer = [point for point in view.throughput if point.at + timedelta(seconds=point.seconds) > since]
    if deaths := sum(point.dead for point in newer):
        shown = _round(view.taken_at - newer[0].at)
        text = f"+{format_count(deaths)} in the last {format_coarse(shown)}, {_count(view.dead_unresolved)} unresolved"
        yield Attention("deaths", Severity.WARNING, "dead letters", text, "dead")


def _round(span: timedelta) -> timedelta:
    """To whole minutes, where there is one."""
    minutes = round(span / timedelta(minutes=1))
    return timedelta(minutes=minutes) if minutes else span


def _troubled_workers(view: Overview) -> Iterator[Attention]:
    """One finding for each pool or host: what silences one worker, such as a lost network, silences the others."""
    silent: dict[tuple[str, str], list[WorkerView]] = {}
    for worker in sorted(view.workers, key=lambda worker: (worker.heartbeat_at, worker.id)):
        if _is_live(worker) and worker.is_stale:
            silent.setdefault(_belongs_to(worker), []).append(worker)
    for workers in silent.values():
        first = workers[0]
        many = f"{_workers(workers)} sent no heartbeat, one" if len(workers) > 1 else "sent no heartbeat"
        text = f"{many} for {format_coarse(view.taken_at - first.heartbeat_at)}"
        key = f"stale {first.host} {first.pool or ''}" if len(workers) > 1 else f"stale {first.id}"
        yield Attention(key, Severity.CRITICAL, _subject(workers), text, "workers", worker_key(first))


def _stalled_loops(view: Overview) -> Iterator[Attention]:
    """A process that beats while a part of it stands still: nothing is claimed there, or lost jobs stay lost."""
    for worker in view.workers:
        if _is_live(worker) and not worker.is_stale and (stalled := worker.stalled_loops):
            key, place = f"loops {worker.id}", ("workers", worker_key(worker))
            yield Attention(key, Severity.CRITICAL, _name(worker), _loops(stalled), *place)
    for supervisor in view.supervisors:
        if not supervisor.is_stale and (stalled := supervisor.stalled_loops):
            subject = f"supervisor {supervisor.host}"
            yield Attention(f"loops {supervisor.host}", Severity.CRITICAL, subject, _loops(stalled), "workers")


def _loops(stalled: Sequence[LoopHealth]) -> str:
    more = f", and {len(stalled) - 1} more" if len(stalled) > 1 else ""
    return stalled_words(stalled[0]) + more


def _crashes(view: Overview) -> Iterator[Attention]:
    """One finding for each pool, or host where there is none; a pool's crash loop says the same and more."""
    looping = {(pool.host, pool.name) for pool in view.pools if pool.state == "crash_loop"}
    crashed: dict[tuple[str, str], list[WorkerView]] = {}
    for worker in ended_workers(view.workers):
        place = _belongs_to(worker)
        if worker.state == "crashed" and place not in looping and _ended_within(worker, view, RECENT_CRASH):
            crashed.setdefault(place, []).append(worker)
    for workers in crashed.values():
        last = workers[0]
        ago = format_coarse(view.taken_at - (last.stopped_at or view.taken_at))
        many = f"{_workers(workers)} crashed, the last" if len(workers) > 1 else "crashed"
        text = f"{many} {ago} ago: {last.exit_reason or last.exit_signal or 'no reason known'}"
        key = f"crash {last.host} {last.pool or ''}"
        yield Attention(key, Severity.WARNING, _subject(workers), text, "workers", worker_key(last))


def _ended_within(worker: WorkerView, view: Overview, span: timedelta) -> bool:
    return worker.stopped_at is not None and view.taken_at - worker.stopped_at <= span


def _stale_supervisors(view: Overview) -> Iterator[Attention]:
    pools = {pool.host for pool in view.pools if pool.wanted}
    for supervisor in view.supervisors:
        if supervisor.is_stale and supervisor.host in pools:
            text = (
                f"silent for {format_coarse(view.taken_at - supervisor.heartbeat_at)}: workers are not replaced there"
            )
            subject = f"supervisor {supervisor.host}"
            yield Attention(f"supervisor {supervisor.host}", Severity.WARNING, subject, text, "workers")


def _held_snapshot(view: Overview) -> Iterator[Attention]:
    if view.holder_age is not None and view.holder_age >= OLD_SNAPSHOT.total_seconds():
        who = view.holder or "a session"
        text = f"{who} holds back vacuum for {format_coarse(view.holder_age)}: tables grow until it ends"
        yield Attention("snapshot", Severity.WARNING, "old transaction", text, "dash")


def _belongs_to(worker: WorkerView) -> tuple[str, str]:
    """Host and pool; those that somebody started by hand are told apart by their host alone."""
    return worker.host, worker.pool or ""


def _subject(workers: Sequence[WorkerView]) -> str:
    """Whom a finding about workers of one place is about."""
    first = workers[0]
    if len(workers) == 1:
        return _name(first)
    return f"pool {first.pool}" if first.pool else f"host {first.host}"


def _workers(workers: Sequence[WorkerView]) -> str:
    return plural(len(workers), "worker") + ("" if workers[0].pool else " without a pool")


def _name(worker: WorkerView) -> str:
    """The word and the id, which holds the word already where there is no pool."""
    return f"worker {short_worker_id(worker.id).removeprefix('worker-')}"


def _is_live(worker: WorkerView) -> bool:
    return worker.stopped_at is None


def _count(count: Count) -> str:
    return format_count(count.value, cap=None if count.exact else DEPTH_CAP)


def _jobs(count: Count) -> str:
    return plural(count.value, "job") if count.exact else f"{_count(count)} jobs"


_RULES: Sequence[Callable[[Overview], Iterator[Attention]]] = (
    _read_only_server,
    _forgetful_server,
    _crash_looping_pools,
    _failing_queues,
    _unserved_queues,
    _short_pools,
    _troubled_workers,
    _stalled_loops,
    _crashes,
    _paused_queues,
    _unknown_types,
    _old_jobs,
    _growing_dead_letters,
    _stale_supervisors,
    _held_snapshot,
)


def troubled_queues(found: Sequence[Attention]) -> frozenset[str]:
    """Names of the queues that the findings are about."""
    return frozenset(attention.target for attention in found if attention.screen == "queues")
