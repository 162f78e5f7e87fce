"""A server that becomes read-only under its clients, and a standby that takes over: two real servers, one address."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq_core import JobQueue
from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate
from tests.conftest import SCHEMA
from tests.support.databases import FAST
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import ROOT, Workers, workers_on
from tests.worker.conftest import open_database

pytestmark = [pytest.mark.ha, pytest.mark.system, pytest.mark.timeout(300)]

PATIENT = {"heartbeat": 0.5, "stale_limit": 30, "reaper_interval": 0.5}


@dataclass
class Pair:
    """A primary and its standby."""

    primary: EmbeddedServer
    standby: EmbeddedServer

    @property
    def dsn(self) -> str:
        """Of whichever of the two takes writes."""
        parts = [conninfo_to_dict(server.status().tcp_url or "") for server in (self.primary, self.standby)]
        return make_conninfo(
            "",
            host=",".join(str(part["host"]) for part in parts),
            port=",".join(str(part["port"]) for part in parts),
            user=str(parts[0]["user"]),
            password=str(parts[0]["password"]),
            dbname=str(parts[0]["dbname"]),
            sslmode="disable",
            target_session_attrs="read-write",
            options=f"-c search_path={SCHEMA},public",
        )

    def promote(self) -> None:
        """What a failover manager does; everything that was committed on the primary is there."""
        with psycopg.connect(self.primary.start(), autocommit=True) as conn:
            (position,) = conn.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
        with psycopg.connect(self.standby.start(), autocommit=True) as conn:
            caught_up = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            eventually(lambda: (conn.execute(caught_up, (position,)).fetchone() or (False,))[0], timeout=60)
            conn.execute("SELECT pg_promote(true, 60)")


@pytest.fixture
def pair(home: Path) -> Iterator[Pair]:
    primary, standby = EmbeddedServer("ha-first", home, settings=FAST), EmbeddedServer("ha-second", home, settings=FAST)
    migrate(primary.start(), schema=SCHEMA)
    try:
        copy(primary, standby)
        standby.start()
        yield Pair(primary, standby)
    finally:
        for server in (standby, primary):
            server.stop()
            shutil.rmtree(server._directory, ignore_errors=True)


def copy(primary: EmbeddedServer, standby: EmbeddedServer) -> None:
    """A base backup that starts as a standby."""
    standby._directory.mkdir(mode=0o700, parents=True)
    source, target = primary._cluster(), standby._cluster()
    address = conninfo_to_dict(primary.start())
    made = target.account.run(
        target.binaries.program("pg_basebackup"),
        *("-h", str(address["host"]), "-p", str(address["port"]), "-U", str(address["user"])),
        *("-D", str(target.data_directory), "-R", "-X", "stream", "-c", "fast"),
        timeout=120,
    )
    if made.returncode != 0:
        pytest.skip(f"no standby can be made here: {made.stdout.strip()[-300:]}")
    password = target.account.quarters / "password"
    password.write_text((source.account.quarters / "password").read_text())
    password.chmod(0o600)
    target.account.own(password)


@pytest.fixture
def database(pair: Pair) -> Iterator[QueueDatabase]:
    database = open_database(pair.dsn)
    yield database
    database.close()


@pytest.fixture
def workers(database: QueueDatabase, tmp_path: Path) -> Iterator[Workers]:
    with workers_on(database, tmp_path) as started:
        yield started


def test_work_goes_on_at_the_new_primary_and_no_job_fails_for_it(
    pair: Pair, database: QueueDatabase, workers: Workers
) -> None:
    started = [workers.start(concurrency=3, **PATIENT) for _ in range(2)]
    for _ in range(300):
        database.put("sleep", {"seconds": 0.05})
    long = database.put("sleep", {"seconds": 4}, priority=1)
    eventually(lambda: database.value("SELECT count(*) FROM job_runs") > 20, timeout=60)

    # The old primary goes on answering reads, to sessions that it knows and to new ones.
    with psycopg.connect(pair.primary.start(), autocommit=True) as conn:
        conn.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        conn.execute("SELECT pg_reload_conf()")
    eventually(lambda: all("read-only transaction" in worker.text() for worker in started), timeout=30)
    pair.promote()
    database.close()

    eventually(lambda: database.value("SELECT count(*) FROM jobs") == 0, timeout=90)
    assert database.value("SELECT inet_server_port()") == conninfo_port(pair.standby)
    assert all(worker.process.poll() is None for worker in started)
    assert database.outcomes(long) == ["succeeded"]
    assert database.value("SELECT count(DISTINCT job_id) FROM job_runs WHERE outcome = 'succeeded'") == 301
    assert database.all("SELECT FROM job_runs WHERE outcome IN ('retried', 'dead')") == []
    assert database.all("SELECT FROM dead_letter_jobs") == []
    assert database.all(FAULTS) == []
    with JobQueue(pair.dsn) as queue:
        last = queue.enqueue("noop").id
    eventually(lambda: database.outcomes(last) == ["succeeded"], timeout=30)


def test_primary_that_is_killed_is_succeeded_without_a_word_from_anybody(
    pair: Pair, database: QueueDatabase, workers: Workers
) -> None:
    worker = workers.start(**PATIENT)
    with JobQueue(pair.dsn, timeout=30) as queue:
        before = queue.enqueue("noop").id
        eventually(lambda: database.outcomes(before) == ["succeeded"], timeout=30)

        pair.promote()
        pair.primary.stop()
        database.close()

        after = queue.enqueue("noop").id
        eventually(lambda: database.outcomes(after) == ["succeeded"], timeout=60)
    assert worker.process.poll() is None


def test_standby_serves_displays_and_is_named_by_the_check_up(pair: Pair, database: QueueDatabase) -> None:
    job_id = database.put("noop")
    standby = pair.standby.status().tcp_url or ""
    eventually(lambda: str(job_id) in command(standby, "jobs", "--json").stdout, timeout=30)

    report = command(standby, "doctor")
    refused = command(standby, "jobs", "cancel", str(job_id), "--yes")

    assert "this server takes no writes (a standby?)" in report.stdout
    assert "use the primary's address" in report.stdout
    assert refused.returncode == 4
    assert (database.job(job_id) or {})["status"] == "pending"


def command(dsn: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pgq_core.cli", *arguments, "--dsn", dsn],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def conninfo_port(server: EmbeddedServer) -> int:
    return int(str(conninfo_to_dict(server.status().tcp_url or "")["port"]))
