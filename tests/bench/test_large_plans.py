"""A worker's plans at full size: a million jobs wait, a million of the future lie in front, or as many dead entries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgq_core.database import connect_sync
from pgq_core.migrate import migrate
from tests.schema.sessions import Session, session
from tests.schema.test_plans import SCHEMA, SEED, STATEMENTS, Case, assert_planned_well, executed_plan, scanned, walk
from tests.support.databases import database_name, new_database

pytestmark = pytest.mark.torture

ROWS = 1_000_000
PINNED = [case for case in STATEMENTS if case.is_pinned]

FILL = """
INSERT INTO jobs (queue, payload, priority, not_before)
SELECT 'default', '{"type": "a"}', %(priority)s, now() + %(due)s::interval + n * interval '1 us'
  FROM generate_series(1, %(rows)s) AS n"""
DEAD_PRIORITY = 300


@pytest.fixture(scope="module")
def large(server_dsn: str) -> Iterator[str]:
    """Nobody has ever vacuumed or analysed it."""
    with new_database(server_dsn) as dsn:
        migrate(dsn, SCHEMA)
        with _session(dsn) as conn:
            for table in ("jobs", "dead_letter_jobs", "job_keys", "job_stats"):
                conn.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            conn.execute(SEED)
            conn.execute(FILL, {"priority": 0, "due": "-2 hours", "rows": ROWS})
            conn.execute(FILL, {"priority": 200, "due": "1 day", "rows": ROWS})
        yield dsn


@pytest.fixture(scope="module")
def dead(server_dsn: str, large: str) -> Iterator[str]:
    """The same with dead entries in front of the first job that is due."""
    with new_database(server_dsn, template=database_name(large)) as dsn:
        with _session(dsn) as conn:
            conn.execute(FILL, {"priority": DEAD_PRIORITY, "due": "-3 hours", "rows": ROWS})
            conn.execute("DELETE FROM jobs WHERE priority = %s", (DEAD_PRIORITY,))
        yield dsn


def _session(dsn: str) -> Session:
    return session(dsn, options=f"-c search_path={SCHEMA} -c timezone=UTC")


@pytest.mark.parametrize("case", PINNED, ids=lambda case: case.name)
def test_pages_touched_do_not_grow_with_the_backlog(large: str, case: Case) -> None:
    assert_planned_well(large, case)


@pytest.mark.parametrize("case", PINNED, ids=lambda case: case.name)
def test_plan_is_kept_behind_dead_entries(dead: str, case: Case) -> None:
    with connect_sync(dead, application_name="plans", pinned_plans=True) as conn:
        conn.execute(f"SET search_path = {SCHEMA}")
        nodes = list(walk(executed_plan(conn, case.statement, SCHEMA)["Plan"]))

        assert scanned(conn, nodes) == []
        assert case.index is None or case.index in {node.get("Index Name") for node in nodes}
