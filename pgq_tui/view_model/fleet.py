"""Pools and their workers as one tree in rows: a pool, then the processes that make it up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pgq_core.domain.snapshot import Overview, PoolView, WorkerView
from pgq_tui.view_model.times import format_span

POOL_PREFIX = "pool "
WORKER_PREFIX = "worker "
ENDED_SHOWN = 3
"""Ended workers listed below a pool: the last ones say what there is to say, also of a hundred."""


@dataclass(frozen=True, slots=True)
class FleetPool:
    """A pool with its workers, the live ones first. `pool` is None for workers that belong to none."""

    pool: PoolView | None
    workers: tuple[WorkerView, ...]

    @property
    def key(self) -> str:
        return pool_key(self.pool) if self.pool else f"{POOL_PREFIX}-"

    @property
    def live(self) -> tuple[WorkerView, ...]:
        return tuple(worker for worker in self.workers if worker.stopped_at is None)

    @property
    def busy(self) -> int:
        """Busy slots; a job that a worker has claimed ahead of a free one makes none busy."""
        return sum(min(worker.running, worker.concurrency) for worker in self.live)

    @property
    def slots(self) -> int:
        return sum(worker.concurrency for worker in self.live)


def pool_key(pool: PoolView) -> str:
    """What a pool's row is known by."""
    return f"{POOL_PREFIX}{pool.host} {pool.name}"


def worker_key(worker: WorkerView) -> str:
    """What a worker's row is known by."""
    return f"{WORKER_PREFIX}{worker.id}"


def fleet(view: Overview, kept: Collection[str] = ()) -> tuple[FleetPool, ...]:
    """All pools in the order of host and name, then the workers without a pool. `kept`: rows that must be there."""
    belonging: dict[tuple[str, str], list[WorkerView]] = {(pool.host, pool.name): [] for pool in view.pools}
    loose: list[WorkerView] = []
    for worker in view.workers:
        belonging.get((worker.host, worker.pool or ""), loose).append(worker)
    pools = sorted(view.pools, key=lambda pool: (pool.host, pool.name))
    found = [FleetPool(pool, _in_order(belonging[pool.host, pool.name], kept)) for pool in pools]
    return (*found, FleetPool(None, _in_order(loose, kept))) if loose else tuple(found)


def _in_order(workers: Sequence[WorkerView], kept: Collection[str]) -> tuple[WorkerView, ...]:
    """Live ones first, by their start, so that no row moves while it lives; then the last that ended."""
    live = sorted((one for one in workers if one.stopped_at is None), key=lambda worker: (worker.started_at, worker.id))
    ended = enumerate(ended_workers(workers))
    return (*live, *(worker for place, worker in ended if place < ENDED_SHOWN or worker_key(worker) in kept))


def ended_workers(workers: Iterable[WorkerView]) -> list[WorkerView]:
    """Those that ended, the last one first."""
    ended = [(worker.stopped_at, worker.id, worker) for worker in workers if worker.stopped_at is not None]
    return [worker for _, _, worker in sorted(ended, key=lambda entry: entry[:2], reverse=True)]


def pool_name(pool: PoolView, pools: Sequence[PoolView]) -> str:
    """The name, with its host where the same name exists on another one."""
    is_shared = any(other.name == pool.name and other.host != pool.host for other in pools)
    return f"{pool.name}@{pool.host}" if is_shared else pool.name


def short_worker_id(worker_id: str) -> str:
    """A worker's id for narrow places: pool and the part that nothing else has.

    >>> short_worker_id("shop-1-mail-5b0e77d1"), short_worker_id("mine")
    ('mail-5b0e77d1', 'mine')
    """
    return "-".join(worker_id.split("-")[-2:])


def find_pool(view: Overview, key: str) -> PoolView | None:
    """The pool of a row: the pool itself, or that of the worker in the row."""
    worker = find_worker(view, key)
    place = (worker.host, worker.pool) if worker else None
    return next((pool for pool in view.pools if pool_key(pool) == key or (pool.host, pool.name) == place), None)


def find_worker(view: Overview, key: str) -> WorkerView | None:
    return next((worker for worker in view.workers if worker_key(worker) == key), None)


def short_worker_name(worker: WorkerView) -> str:
    """What tells a worker apart inside its pool: its id without host and pool."""
    prefix = f"{worker.host}-{worker.pool or 'worker'}-"
    return worker.id.removeprefix(prefix) or worker.id


def worker_state(worker: WorkerView) -> str:
    """One word for how a worker is: what it does, unless it is silent or about to do something else."""
    if worker.stopped_at is not None:
        return worker.state if worker.state in {"crashed", "lost"} else "stopped"
    if worker.is_stale:
        return "stale"
    if worker.stalled_loops:
        return "stalled"
    if worker.wanted in {"drain", "stop"} and worker.state != "draining":
        return "draining"
    if worker.wanted == "restart":
        return "restarting"
    return worker.state


def exit_words(worker: WorkerView) -> str:
    """How a worker ended, in words; empty while it lives."""
    if worker.exit_signal:
        return worker.exit_signal
    if worker.exit_code is not None:
        return f"exit {worker.exit_code}"
    return worker.exit_reason or "" if worker.stopped_at else ""


def pool_state(pool: PoolView, now: datetime) -> tuple[str, str]:
    """How a pool is: a word that has a look, and the words to show; the number that stays of the number wanted first.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
    >>> def pool(**more):
    ...     facts = dict(wanted=2, alive=2, state="ok", retry_at=None, draining=0, has_supervisor=True) | more
    ...     return PoolView("h", "p", ("q",), 4, minimum=0, maximum=9, state_detail=None, restarts=0, **facts)
    >>> pool_state(pool(), now), pool_state(pool(alive=1), now), pool_state(pool(wanted=0, alive=0), now)
    (('ok', '2/2'), ('starting', '1/2'), ('idle', '0/0'))
    >>> pool_state(pool(state="crash_loop", retry_at=now + timedelta(seconds=32)), now)
    ('crash_loop', '2/2 next 32s')
    >>> pool_state(pool(has_supervisor=False, alive=0), now), pool_state(pool(wanted=1, draining=1), now)
    (('warning', '0/2 no supervisor'), ('ok', '1/1 1 leaves'))
    """
    alive = pool.alive - pool.draining
    numbers = f"{alive}/{pool.wanted}"
    if pool.state == "crash_loop":
        wait = f" next {format_span(max((pool.retry_at - now).total_seconds(), 0))}" if pool.retry_at else " crash loop"
        return "crash_loop", numbers + wait
    if pool.state == "refused":
        return "failed", f"{numbers} refused"
    if not pool.has_supervisor and alive != pool.wanted:
        return "warning", f"{numbers} no supervisor"
    if pool.draining:
        numbers += f" {pool.draining} {'leaves' if pool.draining == 1 else 'leave'}"
    if alive < pool.wanted:
        return "starting", numbers
    return ("ok" if pool.wanted else "idle"), numbers


def total_slots(view: Overview) -> tuple[int, int]:
    """Busy slots and all slots of the live workers; a job claimed ahead of a free slot makes none busy."""
    live = list(live_workers(view))
    return sum(min(one.running, one.concurrency) for one in live), sum(one.concurrency for one in live)


def live_workers(view: Overview) -> Iterator[WorkerView]:
    return (worker for worker in view.workers if worker.stopped_at is None)
