"""The load of a run is what was committed, not what was wished for; part of the default suite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_core.bench.schedule import Schedule
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase
from tests.torture.offering import offering
from tests.torture.timeline import Timeline


@pytest.fixture
def database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as dsn:
        database = QueueDatabase(dsn)
        yield database
        database.close()


def test_several_producers_offer_one_schedule(database: QueueDatabase, tmp_path: Path) -> None:
    schedule = Schedule(rate=300, seconds=0.5)

    with offering(database.dsn, tmp_path, "job", {"n": 1}, schedule, producers=2) as load:
        pass

    assert sorted(load.ids) == [row["id"] for row in database.all("SELECT id FROM jobs ORDER BY id")]
    assert len(load.ids) == schedule.jobs == 150
    assert all(sent.committed_at >= load.started_at for sent in load.sent)
    assert database.value('SELECT count(DISTINCT priority) FROM jobs WHERE payload @> \'{"data": {"n": 1}}\'') == 3


def test_what_is_held_up_is_sent_late_and_not_left_out(database: QueueDatabase, tmp_path: Path) -> None:
    schedule = Schedule(rate=300, seconds=0.5)
    conn = database.connection()

    with offering(database.dsn, tmp_path, "job", {}, schedule, producers=2) as load, conn.transaction():
        conn.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
        while time.time() < load.ends_at:
            time.sleep(0.01)

    assert len(load.ids) == database.value("SELECT count(*) FROM jobs") == schedule.jobs
    assert load.latest > 0.1
    assert load.timeline().rate(load.started_at, load.ends_at) < 0.95 * schedule.rate, "and the run would say so"


def test_a_window_is_judged_by_what_was_offered_in_it() -> None:
    tenths = [number / 10 for number in range(100) if not 30 <= number < 50]
    offered = Timeline(at + 0.02 for at in tenths)
    finished = Timeline(at + 0.05 for at in tenths if not (70 <= round(at * 10) < 80 and round(at * 10) % 2))

    assert finished.worst_share(offered, 0.0, 7.0, 1.0) == 1.0, "nothing was asked of it from 3 to 5"
    assert finished.worst_share(offered, 0.0, 10.0, 1.0) == pytest.approx(0.5)
    assert finished.worst(0.0, 10.0, 1.0) == 0.0, "a rate alone would blame it"
    assert finished.worst_share(Timeline([]), 0.0, 10.0, 1.0) == 0.0, "without a load nothing is shown"
