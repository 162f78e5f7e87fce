"""How supervisors end: asked, in a hurry, killed, without a database, without a parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate
from pgq_tui.supervisor import find_running, start_detached, stop_detached
from tests.supervisor.support import HOST, PATIENCE, Host, all_gone, pool
from tests.support.databases import ready_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.system


def start_job(host: Host, seconds: float) -> int:
    """The id of a job that is certainly running."""
    (job_id,) = host.enqueue("sleep", {"seconds": seconds})
    host.until_started(1)
    return job_id


@pytest.mark.slow
def test_every_pool_has_its_own_grace(host: Host) -> None:
    patient, hasty = pool("patient", wanted=1, queues=("slow",), grace=30.0), pool("hasty", wanted=1, grace=0.2)
    supervisor = host.supervise(patient, hasty, grace=10.0)
    host.until_running(2)
    for queue, seconds in (("slow", 4.0), ("default", 120.0)):
        host.enqueue("sleep", {"seconds": seconds}, queue=queue)
    host.until_started(2)

    supervisor.ask_to_stop()

    assert host.until_stopped(supervisor) == 0
    assert host.rows("SELECT queue, outcome FROM job_runs ORDER BY queue") == [
        {"queue": "default", "outcome": "released"},
        {"queue": "slow", "outcome": "succeeded"},
    ]
    assert host.rows("SELECT queue, status, attempts FROM jobs") == [
        {"queue": "default", "status": "pending", "attempts": 0}
    ]


@pytest.mark.parametrize(
    "number",
    [signal.SIGHUP, *(pytest.param(other, marks=pytest.mark.slow) for other in (signal.SIGTERM, signal.SIGINT))],
)
def test_a_signal_drains_all_workers(host: Host, number: signal.Signals) -> None:
    supervisor = host.supervise(pool(wanted=2), grace=20.0)
    pids = [row["pid"] for row in host.until_running(2)]
    start_job(host, 1.5)

    supervisor.process.send_signal(number)

    assert host.until_stopped(supervisor) == 0
    assert all_gone(pids)
    assert host.rows("SELECT outcome FROM job_runs") == [{"outcome": "succeeded"}]
    assert host.rows("SELECT 1 AS one FROM supervisors") == []
    assert {row["state"] for row in host.rows("SELECT state FROM workers")} == {"stopped"}


def test_a_second_signal_hands_jobs_back_unspent_at_once(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=1), grace=60.0)
    host.until_running(1)
    job_id = start_job(host, 120)

    supervisor.process.send_signal(signal.SIGTERM)
    eventually(lambda: host.workers("draining"), timeout=PATIENCE)
    supervisor.process.send_signal(signal.SIGTERM)

    assert host.until_stopped(supervisor) == 0
    assert host.rows("SELECT id, status, attempts FROM jobs") == [{"id": job_id, "status": "pending", "attempts": 0}]


def test_what_a_job_left_behind_ends_with_its_worker(host: Host, tmp_path: Path) -> None:
    supervisor = host.supervise(pool(wanted=1), grace=0.5)
    worker = host.until_running(1)[0]
    note = tmp_path / "pids"
    host.enqueue("leave children", {"pids": str(note)})
    pids = eventually(lambda: [int(pid) for pid in note.read_text().split()] if note.exists() else [], timeout=PATIENCE)
    # Not in the supervisor's session: a terminal's Ctrl-C reaches the supervisor alone.
    assert os.getsid(worker["pid"]) == worker["pid"] != os.getsid(supervisor.info.pid)

    supervisor.ask_to_stop()

    assert host.until_stopped(supervisor) == 0
    eventually(lambda: all_gone([worker["pid"], *pids]), timeout=PATIENCE)


def test_orphans_of_a_killed_supervisor_leave_and_the_next_one_never_has_too_many(host: Host) -> None:
    first = host.supervise(pool(wanted=3), grace=3.0)
    orphans = host.until_running(3)
    start_job(host, 0.5)
    first.process.kill()
    first.wait(60)

    second = host.supervise(pool(wanted=3), grace=3.0)

    seen = []

    def has_taken_over() -> bool:
        seen.append(len(host.workers("starting", "running", "draining")))
        running = [row["supervisor_id"] for row in host.workers()]
        return running == [second.info.supervisor_id] * 3 and all_gone([row["pid"] for row in orphans])

    eventually(has_taken_over, timeout=PATIENCE)
    assert max(seen) <= 3
    host.until_outcomes(succeeded=1)


def test_nothing_outlives_a_program_that_was_killed(host: Host, tmp_path: Path) -> None:
    """The console crashes: its tied supervisor drains its workers and leaves."""
    options = tmp_path / "options.json"
    options.write_text(host.options(pool(wanted=1), grace=2.0).model_dump_json())
    script = (
        "import sys, time; from pathlib import Path; from pgq_tui.supervisor import SupervisorOptions, start_tied\n"
        "options = SupervisorOptions.model_validate_json(Path(sys.argv[1]).read_text())\n"
        "print(start_tied(options).info.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(options)], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        supervisor_pid = int(program.stdout.readline())
        pids = [row["pid"] for row in host.until_running(1)]

        program.kill()

    eventually(lambda: all_gone([supervisor_pid, *pids]), timeout=PATIENCE)


def test_a_detached_supervisor_outlives_its_starter_is_found_and_stopped(host: Host) -> None:
    options = host.options(pool(wanted=1))
    address = (host.dsn, "pgq_core", HOST)
    assert asyncio.run(find_running(*address, state_dir=host.state_dir)) is None

    started = start_detached(options)
    try:
        found = asyncio.run(find_running(*address, state_dir=host.state_dir))
        pids = [row["pid"] for row in host.until_running(1)]

        assert found is not None
        assert (found.supervisor_id, found.pid) == (started.supervisor_id, started.pid)
        assert os.getsid(started.pid) == started.pid
        assert psutil.Process(started.pid).terminal() is None
        assert started.log is not None
        assert "in_charge" in started.log.read_text()
    finally:
        assert stop_detached(*address, timeout=20, state_dir=host.state_dir)
    assert all_gone(pids)
    assert asyncio.run(find_running(*address, state_dir=host.state_dir)) is None


def test_a_supervisor_that_was_killed_is_not_found_although_its_row_is_fresh(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=0), stale_limit=60.0)
    supervisor.process.kill()
    supervisor.wait(60)

    assert len(host.rows("SELECT 1 AS one FROM supervisors")) == 1
    assert asyncio.run(find_running(host.dsn, "pgq_core", HOST, stale_limit=60.0, state_dir=host.state_dir)) is None


@pytest.fixture
def own_server(home: Path) -> Iterator[EmbeddedServer]:
    """A server that a test may stop."""
    server = ready_server("outage", home)
    yield server
    server.stop()


@pytest.fixture
def own_host(own_server: EmbeddedServer, tmp_path: Path) -> Iterator[Host]:
    dsn = own_server.start()
    migrate(dsn)
    host = Host(dsn + "&options=-csearch_path%3Dpgq_core", tmp_path / "state")
    host.rows("TRUNCATE jobs, job_runs, workers, worker_pools, supervisors")
    yield host
    host.close()


def test_a_supervisor_leaves_in_time_although_the_database_is_down(own_host: Host, own_server: EmbeddedServer) -> None:
    supervisor = own_host.supervise(pool(wanted=2), grace=3.0)
    pids = [row["pid"] for row in own_host.until_running(2)]
    start_job(own_host, 300)
    own_server.stop()

    supervisor.ask_to_stop()

    # The job would take 300 s, and the database never comes back.
    own_host.until_stopped(supervisor)
    assert all_gone(pids)


@pytest.mark.slow
def test_a_restart_of_the_database_is_survived(own_host: Host, own_server: EmbeddedServer) -> None:
    supervisor = own_host.supervise(pool(wanted=2))
    before = {row["pid"] for row in own_host.until_running(2)}

    own_server.stop()
    own_server.start()
    own_host.enqueue("quick", {}, count=10)

    own_host.until_outcomes(succeeded=10)
    assert {row["pid"] for row in own_host.until_running(2)} == before
    own_host.scale(3)
    own_host.until_running(3)
    assert supervisor.process.poll() is None
