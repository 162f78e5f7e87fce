"""What machine, server and workers have used so far, and what a job cost: the difference of two looks."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import psycopg

from pgq_core.bench.fleet import FleetUsage, WorkerFleet
from pgq_core.bench.machine import busy_seconds, server_cpu
from pgq_core.bench.server import BenchDatabase
from pgq_core.bench.statements import RelationWal, TableCounters, WalPosition

_GONE_SECONDS = 5.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Reading:
    """One look. Times in seconds."""

    at: float
    wal: WalPosition
    busy: float
    server: float | None
    fleet: FleetUsage


def take_reading(database: BenchDatabase, fleet: WorkerFleet, postmaster: int | None) -> Reading:
    wal = database.statements.read_wal_position().fetch_one_sync(database.conn)
    if wal is None:
        raise AssertionError("a position without a table is always one row")
    return Reading(time.monotonic(), wal, busy_seconds(), server_cpu(postmaster), fleet.usage())


def read_counters(database: BenchDatabase) -> TableCounters:
    counters = database.statements.read_table_counters().fetch_one_sync(database.conn)
    if counters is None:
        raise AssertionError("sums without a group are always one row")
    return counters


def costs(before: Reading, after: Reading, jobs: int) -> dict[str, float]:
    """Per job, by metric name."""
    micros = 1e6 / jobs
    found = {
        "wal_bytes": (after.wal.bytes - before.wal.bytes) / jobs,
        "cpu_runners": (after.fleet.runners.cpu - before.fleet.runners.cpu) * micros,
        "cpu_keepers": (after.fleet.keepers.cpu - before.fleet.keepers.cpu) * micros,
        "cpu_machine": (after.busy - before.busy) * micros,
        "rss_runner": after.fleet.runners.largest_rss / 1e6,
        "rss_keeper": after.fleet.keepers.largest_rss / 1e6,
    }
    if before.server is not None and after.server is not None:
        found["cpu_server"] = (after.server - before.server) * micros
    return found


def row_costs(before: TableCounters, after: TableCounters, jobs: int) -> dict[str, float]:
    """Row versions and commits per job, and the dead versions left."""
    return {
        "commits": (after.commits - before.commits) / jobs,
        "rows_inserted": (after.inserted - before.inserted) / jobs,
        "rows_updated": (after.updated - before.updated) / jobs,
        "rows_deleted": (after.deleted - before.deleted) / jobs,
        "dead_tuples": after.dead / jobs,
    }


def connections_of(database: BenchDatabase) -> int:
    """Sessions of workers and producers now."""
    rows = database.statements.list_connections().fetch_all_sync(database.conn)
    return sum(row.connections for row in rows)


def wait_until_alone(database: BenchDatabase) -> None:
    """A session reports the rows it wrote when it ends at the latest: read counters when the others have gone."""
    deadline = time.monotonic() + _GONE_SECONDS
    while connections_of(database) and time.monotonic() < deadline:
        time.sleep(_POLL)


def wal_split(database: BenchDatabase, before: Reading, after: Reading) -> list[RelationWal]:
    """Empty where the server cannot say, or has already recycled that WAL."""
    with contextlib.suppress(psycopg.Error):
        statement = database.statements.read_wal_by_relation(before.wal.position, after.wal.position)
        return statement.fetch_all_sync(database.conn)
    return []
