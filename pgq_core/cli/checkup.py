"""The checks of `pgq-core doctor`: each looks at one thing and says what to do about it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import psycopg
from psycopg import Connection

from pgq_core.cli.output import duration
from pgq_core.database import connect_sync
from pgq_core.domain.health import LoopHealth, decode_loops
from pgq_core.errors import MissingRights, PgqError
from pgq_core.inspector.views import supervisor_views
from pgq_core.migrate import USUAL_SCHEMAS, check_schema, has_first_form
from pgq_core.queries import Queries
from pgq_core.queries.reads import DutyRow, HealthRow, ServerRow
from pgq_core.runtime import Database
from pgq_core.settings import Settings

OLDEST_SERVER = 140000
CLOCK_TOLERANCE = 2.0
DAYS_AHEAD = 2
_MANY_DEAD_ROWS = 10_000


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedy`: what to do about it; None when nothing needs to be done."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str | None = None


def check_up(settings: Settings, database: Database) -> list[Finding]:
    """All findings, as far as they can be had: without a connection, or a schema, the later checks are left out."""
    try:
        conn = connect_sync(database.dsn, application_name="pgq-core doctor", answer_within=settings.answer_within)
    except (PgqError, psycopg.Error) as error:
        return [Finding("connection", Verdict.FAIL, str(error), "is the server up, and the address right?")]
    with conn:
        return list(_findings(settings, database, conn))


def _findings(settings: Settings, database: Database, conn: Connection[Any]) -> Iterator[Finding]:
    queries = Queries(database.schema)
    began = time.monotonic()
    (server,) = queries.read_server().fetch_all_sync(conn)
    ping = time.monotonic() - began
    where = f"{server.user}@{conn.info.host}/{server.database}, answers in {duration(ping)}"
    yield Finding("connection", Verdict.OK, where)
    yield _server_version(conn)
    yield from _first_form(conn, database)
    yield from _second_home(conn, database)
    schema = _schema(conn, database)
    yield schema
    if schema.verdict is Verdict.FAIL:
        return
    stale_limit = timedelta(seconds=settings.stale_limit)
    before = time.time()
    (health,) = queries.read_health(stale_limit=stale_limit).fetch_all_sync(conn)
    host_clock = (before + time.time()) / 2
    yield _search_path(queries, conn, database)
    yield _rights(health, database)
    yield _read_only(server)
    yield _durability(health)
    yield _triggers(health)
    yield _pooler(health, conn)
    yield _clock(health, host_clock)
    yield _vacuum(server, health)
    yield _partitions(health, database)
    yield _connections(health)
    yield _workers(health)
    yield from _loops(queries, conn, stale_limit, has_workers=health.live_workers > 0)


def _server_version(conn: Connection[Any]) -> Finding:
    version = conn.info.server_version
    shown = f"PostgreSQL {version // 10_000}.{version % 10_000}"
    if version < OLDEST_SERVER:
        return Finding("server", Verdict.FAIL, shown, "PostgreSQL 14 or newer is needed")
    return Finding("server", Verdict.OK, shown)


def _schema(conn: Connection[Any], database: Database) -> Finding:
    try:
        version = check_schema(conn, database.schema)
    except MissingRights as error:  # says itself who can grant what
        return Finding("schema", Verdict.FAIL, str(error))
    except (PgqError, psycopg.Error) as error:
        return Finding("schema", Verdict.FAIL, str(error), f"pgq-core migrate --schema {database.schema}")
    return Finding("schema", Verdict.OK, f'"{database.schema}" is at version {version}')


def _first_form(conn: Connection[Any], database: Database) -> Iterator[Finding]:
    """Tables of the first form in public, when another schema is used, are easily taken for ours."""
    if database.schema != "public" and has_first_form(conn, "public"):
        yield Finding(
            "first form",
            Verdict.WARN,
            'schema "public" holds job tables of the first form, which this program does not look at',
            "to adopt them with all their rows: pgq-core migrate --schema public",
        )


def _second_home(conn: Connection[Any], database: Database) -> Iterator[Finding]:
    """A producer that names the other schema is served by nobody here, and neither side sees anything amiss."""
    for other in USUAL_SCHEMAS:
        if other == database.schema or has_first_form(conn, other):
            continue
        with contextlib.suppress(PgqError, psycopg.Error):
            check_schema(conn, other)
            yield Finding(
                "other schema",
                Verdict.WARN,
                f'schema "{other}" holds job tables, too: workers of "{database.schema}" do not serve it',
                "the same schema for producers and workers: --schema, PGQ_SCHEMA, JobQueue(..., schema=...)",
            )


def _search_path(queries: Queries, conn: Connection[Any], database: Database) -> Finding:
    (path,) = queries.read_search_path().fetch_all_sync(conn)
    if path.is_ours:
        return Finding("plain SQL", Verdict.OK, "a bare jobs means our table")
    detail = f"a bare jobs means {path.schema_of_jobs}.jobs" if path.schema_of_jobs else "a bare jobs is not found"
    remedy = f"pgq-core migrate --schema {database.schema} --set-search-path" if not path.schema_of_jobs else None
    return Finding("plain SQL", Verdict.WARN, detail, remedy)


def _rights(health: HealthRow, database: Database) -> Finding:
    if not health.missing_rights:
        return Finding("rights", Verdict.OK, "all that workers, producers and operators need")
    missing = ", ".join(health.missing_rights)
    return Finding("rights", Verdict.WARN, f'missing on "{database.schema}": {missing}', "see docs/rights.md")


def _read_only(server: ServerRow) -> Finding:
    if server.is_read_only:
        return Finding(
            "writable", Verdict.WARN, "this server takes no writes (a standby?)", "use the primary's address"
        )
    return Finding("writable", Verdict.OK, "takes writes")


def _durability(health: HealthRow) -> Finding:
    if not health.forgetful_settings:
        return Finding("durability", Verdict.OK, "commits wait for the disk")
    off = ", ".join(f"{name} = off" for name in health.forgetful_settings)
    return Finding("durability", Verdict.WARN, f"{off}: a crash may lose accepted jobs", "switch it on for the queue")


def _triggers(health: HealthRow) -> Finding:
    if not health.silent_triggers:
        return Finding("triggers", Verdict.OK, "those of the queue's tables fire")
    return Finding(
        "triggers",
        Verdict.FAIL,
        f"do not fire: {', '.join(health.silent_triggers)}: keys are not kept, states do not follow from times",
        "ALTER TABLE ... ENABLE TRIGGER; session_replication_role = origin, where a role or database sets another",
    )


def _pooler(health: HealthRow, conn: Connection[Any]) -> Finding:
    """A pooler answers with a process number of its own invention."""
    if conn.info.backend_pid == health.backend_pid:
        return Finding("pooler", Verdict.OK, "none: a direct connection")
    return Finding(
        "pooler",
        Verdict.WARN,
        "a connection pooler is in between",
        "LISTEN does not work through one in transaction mode: workers then find jobs by polling alone",
    )


def _clock(health: HealthRow, host_clock: float) -> Finding:
    offset = health.clock - host_clock
    if abs(offset) <= CLOCK_TOLERANCE:
        return Finding("clock", Verdict.OK, f"this host and the server differ by {duration(abs(offset))}")
    direction = "ahead of" if offset < 0 else "behind"
    return Finding(
        "clock",
        Verdict.WARN,
        f"this host is {duration(abs(offset))} {direction} the server",
        "jobs go by the server's clock, so none is harmed; log times and displayed ages are off",
    )


def _vacuum(server: ServerRow, health: HealthRow) -> Finding:
    if server.holder is not None:
        return Finding(
            "vacuum",
            Verdict.WARN,
            f"held back for {duration(server.holder_age)} by {server.holder}",
            "end that transaction: dead rows pile up until then",
        )
    if health.dead_rows > max(_MANY_DEAD_ROWS, health.live_rows):
        return Finding(
            "vacuum", Verdict.WARN, f"jobs has {health.dead_rows:,} dead rows", "autovacuum is behind: is it on?"
        )
    return Finding("vacuum", Verdict.OK, f"nothing holds it back; jobs has {health.dead_rows:,} dead rows")


def _partitions(health: HealthRow, database: Database) -> Finding:
    detail = f"job_runs is prepared for {health.days_ahead} days, today included"
    if health.days_ahead >= DAYS_AHEAD:
        return Finding("partitions", Verdict.OK, detail)
    return Finding(
        "partitions", Verdict.WARN, detail, f"run maintenance, or pgq-core migrate --schema {database.schema}"
    )


def _connections(health: HealthRow) -> Finding:
    detail = f"{health.connections} of {health.max_connections} are taken"
    is_tight = health.connections > health.max_connections * 0.9
    return Finding("connections", Verdict.WARN if is_tight else Verdict.OK, detail)


def _workers(health: HealthRow) -> Finding:
    if health.live_workers:
        return Finding("workers", Verdict.OK, f"{health.live_workers} alive")
    return Finding("workers", Verdict.WARN, "none alive", "pgq-core worker --app MODULE")


def _loops(queries: Queries, conn: Connection[Any], stale_limit: timedelta, *, has_workers: bool) -> Iterator[Finding]:
    """Every inner loop of every process that beats: one that has stopped turning is a failed check."""
    workers = [
        (f"worker {row.id}", row.to_view().loops)
        for row in queries.read_workers(stale_limit=stale_limit, ended_within=timedelta(), limit=500).fetch_all_sync(
            conn
        )
        if row.stopped_at is None
    ]
    pools = queries.read_pools(stale_limit=stale_limit, limit=500).fetch_all_sync(conn)
    supervisors = [(f"supervisor {view.supervisor_id}", view.loops) for view in supervisor_views(pools)]
    processes = workers + supervisors
    duties = queries.read_duties().fetch_all_sync(conn)
    processes += [
        (duty.name, decode_loops(duty.loops, since=duty.renewed_age)) for duty in duties if not duty.is_expired
    ]
    stalled = [f"{name}: {loop.describe()}" for name, loops in processes for loop in _told_of(loops) if loop.is_stalled]
    yield from (Finding("loops", Verdict.FAIL, fault, "see docs/health.md") for fault in stalled)
    if not stalled:
        turning = sum(len(loops) for _, loops in processes)
        yield Finding("loops", Verdict.OK, f"{turning} turn in {len(processes)} processes" if turning else "none known")
    yield from _maintenance(duties, stale_limit, has_workers=has_workers)


def _told_of(loops: Sequence[LoopHealth]) -> Sequence[LoopHealth]:
    """Where the beats have stopped, nothing more is known of the other loops: they are as old as the last beat."""
    silent = [loop for loop in loops if loop.name == "heartbeat" and loop.is_stalled]
    return silent or loops


def _maintenance(duties: Sequence[DutyRow], stale_limit: timedelta, *, has_workers: bool) -> Iterator[Finding]:
    """A leader that left in peace leaves no loops behind; one that vanished without a successor does."""
    remedy = "pgq-core maintain, or a worker without --no-maintenance"
    for duty in duties:
        if duty.is_expired and duty.renewed_age > 2 * stale_limit.total_seconds():
            is_fault = has_workers and duty.loops is not None
            detail = f"nobody has done it for {duration(duty.renewed_age)}"
            yield Finding(duty.name, Verdict.FAIL if is_fault else Verdict.WARN, detail, remedy)
        else:
            yield Finding(duty.name, Verdict.OK, f"looked after {duration(duty.renewed_age)} ago")
