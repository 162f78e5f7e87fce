"""What machine, server and workers have used so far, and what a job cost: the difference of two looks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psycopg

from pgq_core.bench.fleet import FleetUsage, WorkerFleet
from pgq_core.bench.machine import busy_seconds, server_cpu
from pgq_core.bench.server import BenchDatabase
from pgq_core.bench.statements import RelationWal, TableCounters, WalPosition

_GONE_SECONDS = 5.0
_POLL = 0.02
WAL_WINDOW: Final = 256 * 2**20
"""Bytes: reading more takes longer than the benchmark."""


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


def wal_split(database: BenchDatabase, before: Reading, after: Reading, jobs: int) -> dict[str, float]:
    """Bytes of WAL per job by table and index, from the last 256 MB of it; page images after a checkpoint stand apart.

    Empty where the server cannot say, or has already recycled that WAL.
    """
    total = after.wal.bytes - before.wal.bytes
    looked_at = min(total, WAL_WINDOW)
    statement = database.statements.read_wal_by_relation(before.wal.position, after.wal.position, window=WAL_WINDOW)
    try:
        rows = statement.fetch_all_sync(database.conn) if looked_at else []
    except psycopg.Error:
        return {}
    return _per_job(rows, looked_at, total / looked_at / jobs) if rows else {}


def _per_job(rows: Sequence[RelationWal], looked_at: float, share: float) -> dict[str, float]:
    found = {row.relation: (row.bytes - row.page_images) * share for row in rows}
    found["page images"] = sum(row.page_images for row in rows) * share
    found["commits and the rest"] = (looked_at - sum(row.bytes for row in rows)) * share
    return found
