"""What runs per job, per poll or per screen never scans a table that grows.

Statements of a worker keep their plan even where no statistics were ever taken, others where they are fresh.
To add a statement: a line in STATEMENTS. `blocks` is the most that one run may touch (8 kB each): a scan of the seeded
jobs alone touches 6,000.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pgq_core.database import connect_sync
from pgq_core.domain.filters import NO_FINGERPRINT, DeadLetterFilters, Resolution, RunFilters
from pgq_core.migrate import migrate
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob, FinishedJob, RescheduledJob
from pgq_core.queries.lists import ABOVE_ALL_IDS
from tests.schema.sessions import Session, rows, session, value
from tests.schema.statements import executed_plan, walk
from tests.support.databases import database_name, new_database

SEED = (Path(__file__).parent / "seed_backlog.sql").read_text(encoding="utf-8")
SCHEMA = "pgq_core"
QUERIES = Queries(SCHEMA)
GROWING = ("jobs", "dead_letter_jobs", "job_keys", "job_runs%")

MINUTE = timedelta(minutes=1)
RUNNING = [(300000 + n, n) for n in range(1, 101)]
"""(id, claim token) of a hundred running jobs of the seed."""
NOW = time.time()
PAGE = {"before": ABOVE_ALL_IDS, "reach": 5000, "limit": 100}
JOBS = {"stale_limit": MINUTE, "reach": 5000, "limit": 100, "queue": "default", "job_type": None}


@dataclass(frozen=True)
class Case:
    """`is_pinned`: runs on a worker's connection, which pins its plans. `index`: one that the plan has to use."""

    statement: Statement[Any]
    is_pinned: bool = False
    blocks: int = 1000
    index: str | None = None

    @property
    def name(self) -> str:
        return self.statement.name


def worker(statement: Statement[Any], blocks: int = 1000, index: str | None = None) -> Case:
    return Case(statement, is_pinned=True, blocks=blocks, index=index)


def screen(statement: Statement[Any], blocks: int = 1000, index: str | None = None) -> Case:
    return Case(statement, blocks=blocks, index=index)


def claim(queue: str, limit: int, job_types: list[str] | None) -> Statement[Any]:
    return QUERIES.claim_jobs(queue=queue, worker_id="w1", limit=limit, job_types=job_types, lease=None)


STATEMENTS = [
    # per job
    worker(claim("default", 10, ["a", "b"]), index="jobs_ready_idx"),
    worker(claim("default", 10, None), index="jobs_ready_idx"),
    worker(claim("nobody", 10, ["a"]), blocks=50, index="jobs_ready_idx"),
    worker(QUERIES.finish_jobs([FinishedJob(*job, NOW, NOW) for job in RUNNING], worker_id="w1", slot=0), blocks=6000),
    worker(
        QUERIES.reschedule_jobs(
            [RescheduledJob(*job, "w1", None, None, "retried", charge=1, delay=5.0) for job in RUNNING], slot=0
        ),
        blocks=8000,
    ),
    worker(
        QUERIES.bury_jobs(
            [BuriedJob(*job, "w1", None, None, "exhausted", charge=1, error="no") for job in RUNNING], slot=0
        ),
        blocks=12000,
    ),
    worker(QUERIES.release_jobs(RUNNING), blocks=6000),
    # per poll
    worker(QUERIES.promote_due_jobs(queues=["default", "q1"], limit=100), index="jobs_scheduled_idx"),
    worker(QUERIES.list_scheduled_queues(), blocks=50, index="jobs_scheduled_idx"),
    worker(QUERIES.has_due_suspect(queues=["default", "q1"], job_types=["a"]), blocks=50),
    worker(QUERIES.claim_suspect_job(queues=["default", "q1"], worker_id="w1", job_types=["a"]), blocks=50),
    worker(QUERIES.list_cancel_requests(worker_id="w1", ids=[job for job, _ in RUNNING]), blocks=600),
    worker(QUERIES.lock_claims_of_worker(worker_id="w1"), blocks=400),
    worker(QUERIES.lock_lost_jobs(stale_limit=MINUTE, limit=100), blocks=3000),
    worker(QUERIES.pull_back_beats(), blocks=300),
    worker(QUERIES.mark_lost_workers(stale_limit=MINUTE), blocks=300),
    worker(QUERIES.claim_spent_jobs(holder="w1", limit=100), blocks=500),
    worker(QUERIES.claim_unknown_jobs(holder="w1", after=timedelta(days=7), limit=100), blocks=1000),
    worker(QUERIES.prune_keys(limit=1000), blocks=3000),
    worker(QUERIES.release_orphan_keys(after="key-1", limit=100), blocks=1000),
    # per screen; read_queues counts up to its cap in each of the eight queues, by row
    screen(QUERIES.read_queues(cap=10_000, most=200), blocks=45_000),
    screen(
        QUERIES.read_queues(cap=1000, most=200, deep_pending=["default"], deep_scheduled=["default"]), blocks=15_000
    ),
    screen(QUERIES.estimate_depths(), blocks=500),
    screen(QUERIES.read_stats(since=datetime.now(UTC) - 15 * MINUTE, step=timedelta(seconds=5)), blocks=500),
    screen(QUERIES.read_workers(stale_limit=MINUTE, ended_within=MINUTE, limit=500), blocks=300),
    screen(QUERIES.list_runs(RunFilters(), **PAGE), blocks=3000),
    screen(QUERIES.list_runs_after(RunFilters(), after=99_900, seen=[], limit=500), blocks=1000),
    screen(QUERIES.list_runs_of_job(job_id=777, limit=100), blocks=200),
    screen(
        QUERIES.list_running_jobs(worker_id=None, queue=None, job_type=None, stale_limit=MINUTE, limit=200),
        blocks=3000,
    ),
    screen(QUERIES.list_jobs(before=ABOVE_ALL_IDS, **JOBS), blocks=3000),
    screen(QUERIES.list_pending_jobs(after=None, **JOBS), blocks=6000, index="jobs_ready_idx"),
    screen(QUERIES.list_scheduled_jobs(after=None, **JOBS), blocks=6000, index="jobs_scheduled_idx"),
    screen(QUERIES.list_waiting_jobs(after=None, **JOBS), blocks=200),
    screen(QUERIES.list_claimed_jobs(before=ABOVE_ALL_IDS, **JOBS), blocks=3000),
    screen(QUERIES.list_dead_letters(DeadLetterFilters(), **PAGE), blocks=1000),
    screen(QUERIES.list_dead_letters(DeadLetterFilters(queue="q3"), **PAGE), blocks=6000),
    screen(QUERIES.list_dead_letters(DeadLetterFilters(fingerprint=NO_FINGERPRINT), **PAGE), blocks=1000),
    screen(QUERIES.list_dead_letters(DeadLetterFilters(resolution=Resolution.ANY), **PAGE), blocks=1000),
    screen(QUERIES.count_dead_letters(DeadLetterFilters(), **PAGE), blocks=1000),
    screen(QUERIES.read_job_row(job_id=777, stale_limit=MINUTE, limit=1000), blocks=200),
    screen(QUERIES.read_dead_letter(dead_letter_id=777, limit=1000), blocks=200),
    screen(QUERIES.find_job(777), blocks=300),
    # per request of the API, per reading of the metrics
    screen(QUERIES.find_api_token(digest=b"x"), blocks=50),
    screen(QUERIES.find_job_type(name="a"), blocks=50),
    screen(QUERIES.read_selection("x"), blocks=50),
    screen(QUERIES.probe_jobs(), blocks=50),
    screen(QUERIES.list_known_queues(most=100), blocks=300),
    screen(QUERIES.read_running(stale_limit=MINUTE), blocks=300),
    screen(QUERIES.read_late_writes(), blocks=300),
    screen(
        QUERIES.sum_stats(since=datetime.now(UTC) - 15 * MINUTE, before=None, known=["default"], most=100), blocks=500
    ),
]

DESCENTS_OF_OLD = 1.5
"""Before version 17 the index is descended anew for each id of an array; the limits are those of later versions."""


@pytest.fixture(scope="module")
def seeded(server_dsn: str) -> Iterator[str]:
    """The backlog as it was loaded: nobody has ever analysed it."""
    with new_database(server_dsn) as dsn:
        migrate(dsn, SCHEMA)
        with session(dsn, options=f"-c search_path={SCHEMA} -c timezone=UTC") as conn:
            for table in ("jobs", "dead_letter_jobs", "job_keys", "job_stats"):
                conn.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            conn.execute(SEED)
        yield dsn


@pytest.fixture(scope="module")
def analysed(server_dsn: str, seeded: str) -> Iterator[str]:
    with new_database(server_dsn, template=database_name(seeded)) as dsn:
        with session(dsn) as conn:
            conn.execute("VACUUM ANALYZE")
        yield dsn


@pytest.mark.parametrize("case", [case for case in STATEMENTS if case.is_pinned], ids=lambda case: case.name)
def test_a_worker_needs_no_statistics(seeded: str, case: Case) -> None:
    assert_planned_well(seeded, case)


@pytest.mark.parametrize("case", STATEMENTS, ids=lambda case: case.name)
def test_no_growing_table_is_scanned(analysed: str, case: Case) -> None:
    assert_planned_well(analysed, case)


def assert_planned_well(dsn: str, case: Case) -> None:
    with connect_sync(dsn, application_name="plans", pinned_plans=case.is_pinned) as conn:
        conn.execute(f"SET search_path = {SCHEMA}")
        plan = executed_plan(conn, case.statement, SCHEMA)
        nodes = list(walk(plan["Plan"]))

        assert scanned(conn, nodes) == []
        if case.index is not None:
            assert case.index in {node.get("Index Name") for node in nodes}
        # A part that writes runs after the rest, and is not counted into the top of the plan.
        touched = max(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in nodes)
        assert touched <= case.blocks * (1.0 if conn.info.server_version >= 170000 else DESCENTS_OF_OLD)


def scanned(conn: Any, nodes: list[Mapping[str, Any]]) -> list[str]:
    """Growing tables that the plan reads whole; what fits into a few pages may be read whole."""
    large = conn.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE ANY (%s) AND pg_relation_size(oid) > 50 * 8192",
        (list(GROWING),),
    ).fetchall()
    names = {name for (name,) in large}
    return [
        node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] in names
    ]


def test_a_scan_would_be_noticed(analysed: str) -> None:
    with connect_sync(analysed, application_name="plans") as conn:
        conn.execute(f"SET search_path = {SCHEMA}")
        answer: Any = conn.execute("EXPLAIN (FORMAT JSON) SELECT count(*) FROM jobs WHERE payload = '{}'").fetchone()

        assert scanned(conn, list(walk(answer[0][0]["Plan"]))) == ["jobs"]


@pytest.mark.parametrize("is_pinned", [True, False], ids=["pinned", "free"])
def test_a_batch_of_ends_reads_once_what_the_queues_keep(seeded: str, *, is_pinned: bool) -> None:
    """However many queues are set, and however many jobs end."""
    case = next(case for case in STATEMENTS if case.name == "finish_jobs")
    with connect_sync(seeded, application_name="plans", pinned_plans=is_pinned) as conn:
        conn.execute(f"SET search_path = {SCHEMA}")
        with conn.transaction(force_rollback=True):
            conn.execute("INSERT INTO queues (name, audit) SELECT 'q' || n, 'failures' FROM generate_series(1, 200) n")
            nodes = list(walk(executed_plan(conn, case.statement, SCHEMA)["Plan"]))

    assert [node["Actual Loops"] for node in nodes if node.get("Relation Name") == "queues"] == [1]


@pytest.fixture(scope="module")
def taken_for_empty(server_dsn: str, template_database: str) -> Iterator[str]:
    """A vacuum found the table empty and could not cut it: the planner takes it for empty until the next one."""
    with new_database(server_dsn, template=template_database) as dsn:
        with session(dsn, options=f"-c search_path={SCHEMA}") as conn:
            conn.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
            add = (
                "INSERT INTO jobs (payload, locked_by, claim_token) "
                'SELECT \'{"type": "a"}\', %s, %s FROM generate_series(1, %s)'
            )
            conn.execute(add, (None, 0, 2000))
            conn.execute("DELETE FROM jobs")
            conn.execute("VACUUM (TRUNCATE false, ANALYZE) jobs")
            conn.execute(add, (None, 0, 5000))
            conn.execute(add, ("w1", 7, 100))
            conn.execute(add, ("w2", 8, 1000))
        yield dsn


ENDS = {
    "finish_jobs": lambda ids: QUERIES.finish_jobs(
        [FinishedJob(job, 7, NOW, NOW) for job in ids], worker_id="w1", slot=0
    ),
    "reschedule_jobs": lambda ids: QUERIES.reschedule_jobs(
        [RescheduledJob(job, 7, "w1", None, None, "retried", charge=1, delay=5.0) for job in ids], slot=0
    ),
    "bury_jobs": lambda ids: QUERIES.bury_jobs(
        [BuriedJob(job, 7, "w1", None, None, "exhausted", charge=1, error="no") for job in ids], slot=0
    ),
    "release_jobs": lambda ids: QUERIES.release_jobs([(job, 7) for job in ids]),
    "move_jobs": lambda ids: QUERIES.move_jobs(dict.fromkeys(ids, "other")),
    "restore_due_times": lambda ids: QUERIES.restore_due_times(dict.fromkeys(ids, datetime.now(UTC))),
}
OF_WAITING_JOBS = {"move_jobs", "restore_due_times"}


@pytest.mark.parametrize("is_pinned", [True, False], ids=["pinned", "free"])
@pytest.mark.parametrize("name", ENDS)
def test_ends_find_their_rows_where_the_statistics_say_that_there_are_none(
    taken_for_empty: str, name: str, *, is_pinned: bool
) -> None:
    """A row is looked at once for each part of the statement, and never with the whole batch again."""
    with connect_sync(taken_for_empty, application_name="plans", pinned_plans=is_pinned) as conn:
        conn.execute(f"SET search_path = {SCHEMA}")
        which = "status = 'pending'" if name in OF_WAITING_JOBS else "locked_by = 'w1'"
        ids = [job for (job,) in conn.execute(f"SELECT id FROM jobs WHERE {which} ORDER BY id LIMIT 100".encode())]
        nodes = list(walk(executed_plan(conn, ENDS[name](ids), SCHEMA)["Plan"]))

    rows_of_jobs = [node["Actual Loops"] * node["Actual Rows"] for node in nodes if node.get("Relation Name") == "jobs"]
    removed = [
        node["Actual Loops"] * node.get(f"Rows Removed by {kind}", 0)
        for node in nodes
        for kind in ("Filter", "Join Filter")
    ]
    assert max(rows_of_jobs) == len(ids), "it went over rows that it was not told to end"
    assert max(removed) <= len(ids), "it looked at a row once for each row of the batch"


@pytest.fixture
def backlog(analysed: str) -> Iterator[Session]:
    with session(analysed, options=f"-c search_path={SCHEMA}") as conn:
        yield conn


def test_future_jobs_in_front_are_never_looked_at(backlog: Session) -> None:
    claimed = claim("default", 5, None)
    with backlog.transaction(force_rollback=True):
        jobs = claimed.fetch_all_sync(backlog)

        assert [job.priority for job in jobs] == [4] * 5
        assert value(backlog, "SELECT count(*) FROM jobs WHERE status = 'scheduled' AND priority = 100") == 100_000


def test_the_seed_has_the_shape_that_it_promises(backlog: Session) -> None:
    found = rows(backlog, "SELECT status, count(*)::int AS jobs FROM jobs GROUP BY status ORDER BY status")

    assert found == [
        {"status": "pending", "jobs": 200_030},
        {"status": "running", "jobs": 1000},
        {"status": "scheduled", "jobs": 100_050},
    ]
    first = rows(backlog, "SELECT id, claim_token FROM jobs WHERE status = 'running' ORDER BY id LIMIT 100")
    assert [(job["id"], job["claim_token"]) for job in first] == RUNNING
