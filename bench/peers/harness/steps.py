"""What is measured of a peer. Each step starts from a fresh database and answers figures by name."""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness.database import PeerDatabase
from harness.peers import Peer, PeerFailed
from harness.workers import Workers
from pgq_core.bench.figures import percentile
from pgq_core.bench.machine import busy_seconds

FEWEST_JOBS = 500
_POLL = 0.005
_PICKUP_INTERVAL = 0.05
_WARM_UP = 5
_LATEST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked of a peer whose scale is 1."""

    jobs: int
    pickups: int
    settle: float
    """Idle seconds before the pickups."""
    stall: float
    """Seconds without any progress after which a peer has failed."""


def enqueue_one_by_one(peer: Peer, database: PeerDatabase, sizes: Sizes) -> dict[str, float]:  # noqa: ARG001
    """One connection, one call and commit after the other."""
    jobs = peer.about["single_jobs"]
    wal = database.wal_bytes()
    answer = peer.call("single", "--dsn", database.dsn, "--n", jobs)
    return {
        "enqueue one by one, jobs/s": jobs / answer["seconds"],
        "enqueue one by one, WAL B/job": (database.wal_bytes() - wal) / (jobs + 1),
    }


def enqueue_in_bulk(peer: Peer, database: PeerDatabase, sizes: Sizes) -> dict[str, float]:
    """The peer's batch API on one connection."""
    jobs = max(1000, int(sizes.jobs * (peer.about["bulk_scale"] or max(1.0, peer.scale))))
    wal = database.wal_bytes()
    answer = peer.call("bulk", "--dsn", database.dsn, "--n", jobs)
    return {
        "enqueue in bulk, jobs/s": jobs / answer["seconds"],
        "enqueue in bulk, WAL B/job": (database.wal_bytes() - wal) / jobs,
    }


def drain(peer: Peer, database: PeerDatabase, sizes: Sizes, workers: int) -> dict[str, float]:
    """Jobs wait, workers are connected: from the first handler start until the database shows no unfinished job."""
    jobs = max(FEWEST_JOBS, int(sizes.jobs * peer.scale))
    peer.call("bulk", "--dsn", database.dsn, "--n", jobs)
    database.analyze()
    with Workers(peer, database.dsn, workers) as crew:
        counters, statements, wal = database.counters(), database.statements(), database.wal_bytes()
        cpu, busy, told_at = crew.cpu_seconds(), busy_seconds(), time.monotonic_ns()
        crew.go()
        connections = _wait_until_done(peer, database, crew, jobs, sizes.stall)
        ended_at = time.monotonic_ns()
        first = crew.first_start() or told_at
        found = {
            "jobs/s": jobs / ((ended_at - first) * 1e-9),
            "start delay, ms": (first - told_at) * 1e-6,
            "WAL B/job": (database.wal_bytes() - wal) / jobs,
            "connections": float(connections),
            "worker CPU, µs/job": (crew.cpu_seconds() - cpu) / jobs * 1e6,
            "whole machine CPU, µs/job": (busy_seconds() - busy) / jobs * 1e6,
            "handler runs/job": crew.started() / jobs,
        }
        if statements is not None:
            found["statements/job"] = ((database.statements() or 0) - statements) / jobs
        if workers > 1:
            found["busiest worker's share"] = max(crew.shares()) / max(1, crew.started())
    database.wait_until_alone()
    ended = database.counters()
    found |= {
        "commits/job": (ended.commits - counters.commits) / jobs,
        "rows inserted/job": (ended.inserted - counters.inserted) / jobs,
        "rows updated/job": (ended.updated - counters.updated) / jobs,
        "of them in place/job": (ended.updated_in_place - counters.updated_in_place) / jobs,
        "rows deleted/job": (ended.deleted - counters.deleted) / jobs,
        "dead row versions left/job": ended.dead / jobs,
    }
    return {f"drain {workers}w, {name}": value for name, value in found.items()}


def pick_up(peer: Peer, database: PeerDatabase, sizes: Sizes) -> dict[str, float]:
    """One idle worker, a job every 50 ms from another process: from the call, and from its return, to the start."""
    jobs = sizes.pickups + _WARM_UP
    with Workers(peer, database.dsn, 1, stamps=jobs) as crew:
        crew.go()
        time.sleep(sizes.settle)
        times = peer.call("produce", "--dsn", database.dsn, "--n", jobs, "--interval", _PICKUP_INTERVAL)["times"]
        deadline = time.monotonic() + _LATEST_SECONDS
        while crew.started() < jobs and time.monotonic() < deadline:
            time.sleep(_POLL)
        starts = [(start, *times[number]) for number in range(_WARM_UP, jobs) if (start := crew.start_of(number))]
        if not starts:
            raise PeerFailed(f"{peer.name}: no job was picked up: {crew.last_words()}")
    found = {"pickup, jobs seen": float(len(starts))}
    for share in (50, 95, 99):
        from_commit = sorted((start - returned_at) * 1e-6 for start, _, returned_at in starts)
        from_call = sorted((start - called_at) * 1e-6 for start, called_at, _ in starts)
        found[f"pickup p{share} from commit, ms"] = percentile(from_commit, share / 100)
        found[f"pickup p{share} from call, ms"] = percentile(from_call, share / 100)
    return found


def _wait_until_done(peer: Peer, database: PeerDatabase, crew: Workers, jobs: int, stall: float) -> int:
    """Until every job has started and the database shows none that has not ended; the connections seen on the way."""
    started, moved_at, connections = -1, time.monotonic(), 0
    while (now_started := crew.started()) < jobs or database.is_unfinished():
        if now_started != started:
            started, moved_at = now_started, time.monotonic()
        elif time.monotonic() - moved_at > stall:
            raise PeerFailed(f"{peer.name}: stalled after {started} of {jobs} jobs: {crew.last_words()}")
        if not connections and started > jobs // 3:
            connections = database.connections()
        time.sleep(_POLL)
    return connections
