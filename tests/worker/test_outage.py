"""The database goes away under running workers and comes back: nobody has to do anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate
from tests.support.databases import database_dsn, database_name, new_database, ready_server
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers
from tests.torture.proxy import proxy_to
from tests.worker.conftest import open_database

pytestmark = pytest.mark.system

PATIENT = {"heartbeat": 0.5, "stale_limit": 60, "reaper_interval": 0.5}


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedServer]:
    """A server of this test's own, since it is stopped on the way."""
    server = ready_server("outage", home)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def dsn(server: EmbeddedServer) -> Iterator[str]:
    with new_database(server.start(), search_path="pgq_core") as address:
        migrate(address, schema="pgq_core")
        yield address
        server.start()  # to drop the database


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = open_database(dsn)
    yield database
    database.close()


def test_workers_go_on_by_themselves_after_an_outage(
    server: EmbeddedServer, database: QueueDatabase, workers: Workers
) -> None:
    for _ in range(300):
        database.put("sleep", {"seconds": 0.02})
    long = database.put("sleep", {"seconds": 3}, priority=1)
    started = [workers.start(concurrency=3, **PATIENT) for _ in range(2)]
    eventually(lambda: database.value("SELECT count(*) FROM job_runs") > 20, timeout=60)

    database.close()
    server.stop()
    assert all(worker.process.poll() is None for worker in started)
    eventually(lambda: all("database" in worker.text() for worker in started), timeout=30)
    server.start()

    eventually(lambda: database.value("SELECT count(*) FROM jobs") == 0, timeout=90)
    assert all(worker.process.poll() is None for worker in started)
    assert database.value("SELECT count(DISTINCT job_id) FROM job_runs WHERE success") == 301
    # The long one went on while the database was away; its result was held and written once.
    assert database.outcomes(long) == ["succeeded"]
    assert database.all("SELECT FROM dead_letter_jobs") == []
    assert database.all("SELECT FROM job_runs WHERE outcome = 'retried'") == []
    assert database.all(FAULTS) == []
    # Trouble is said once, not at every attempt.
    assert all(worker.text().count("waits_for_database") < 20 for worker in started)


def test_stop_is_bounded_without_a_database(server: EmbeddedServer, database: QueueDatabase, workers: Workers) -> None:
    database.put("sleep", {"seconds": 60})
    worker = workers.start(**{**PATIENT, "grace": 1})
    database.until_started(1)

    database.close()
    server.stop()
    code = worker.stop()

    assert code == 0
    server.start()
    row = database.one("SELECT * FROM jobs")
    assert (row["status"], row["attempts"]) == ("running", 0)  # the reaper of another worker will find it


def test_stop_is_bounded_while_the_database_is_silent(
    server: EmbeddedServer, database: QueueDatabase, workers: Workers
) -> None:
    """Connections stay open and nobody answers: what was asked before cannot even be cancelled."""
    with proxy_to(database_dsn(server.status().tcp_url or "", database_name(database.dsn))) as proxy:
        database.dsn, own = proxy.url, database.dsn
        worker = workers.start(**{**PATIENT, "grace": 1})
        database.dsn = own

        proxy.swallow()
        eventually(lambda: proxy.swallowed, timeout=30)
        code = worker.stop()

    assert code == 0


def test_worker_that_starts_before_its_database_waits_for_it(
    server: EmbeddedServer, database: QueueDatabase, workers: Workers
) -> None:
    job_id = database.put("noop")
    database.close()
    server.stop()

    worker = workers.start(ready=False)
    eventually(lambda: "keeper_waits_for_database" in worker.text(), timeout=30)
    server.start()

    eventually(lambda: database.outcomes(job_id) == ["succeeded"], timeout=60)


def test_severed_sessions_are_opened_again(database: QueueDatabase, workers: Workers) -> None:
    workers.start(**PATIENT)

    for _ in range(3):
        database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        job_id = database.put("noop")
        eventually(lambda job_id=job_id: database.outcomes(job_id) == ["succeeded"], timeout=30)  # type: ignore[misc]  # binds
        retried = database.put("raise", {"python": "WISHES['Retry']('again', delay=0.01)"}, max_attempts=2)
        eventually(lambda retried=retried: database.letter(retried), timeout=30)  # type: ignore[misc]  # binds

    assert database.all("SELECT FROM workers WHERE state <> 'running'") == []
