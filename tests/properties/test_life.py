"""Whatever happens to jobs, in whatever order: the tables agree, and nothing is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import SCHEMA
from tests.properties.life import JobLife
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase
from tests.torture import form
from tests.torture.invariants import TABLES

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


@pytest.fixture(scope="module")
def database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        database = QueueDatabase(address)
        for statement in TABLES.split(";"):
            if statement.strip():
                database.run(statement)
        yield database
        database.close()


def test_any_short_life_keeps_every_invariant(database: QueueDatabase) -> None:
    few = settings(max_examples=8, stateful_step_count=25, derandomize=True, **QUIET)
    run_state_machine_as_test(lambda: JobLife(database), settings=few)


@pytest.mark.torture
def test_any_long_life_keeps_every_invariant(database: QueueDatabase) -> None:
    many = settings(max_examples=form.count(400, 200), stateful_step_count=60, **QUIET)
    run_state_machine_as_test(lambda: JobLife(database), settings=many)


def test_a_job_cancelled_in_a_workers_hands_is_counted_where_it_ends(database: QueueDatabase) -> None:
    """Found by a long life: handed back before it started, it left a run that no statistic knew of."""
    life = JobLife(database)
    life.begin()
    life.enqueue(key=None, max_attempts=1, priority=0, delay=0)
    life.claim(worker="w1", limit=1, leased=False)
    life.cancel(job_id=1)
    life.hand_back(life.claims[0])

    life.the_tables_agree()
    assert database.outcomes(1) == ["cancelled"]
