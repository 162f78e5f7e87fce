"""Workers that are told to leave: in every state, at any time, with or without a database and a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.databases import database_dsn
from tests.support.waiting import eventually
from tests.support.worker_process import FAST, ROOT, WorkerProcess
from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.faults import repeatedly
from tests.torture.fleet import APP
from tests.torture.ledger import LEDGER_VARIABLE
from tests.torture.proxy import Proxy, proxy_to
from tests.torture.server import TortureServer

pytestmark = [pytest.mark.torture, pytest.mark.system]

GRACE = 1.0
MARGIN = 2.0
WITHOUT = {"never there": Proxy.cut, "always silent": Proxy.swallow}
"""What a program may find when it starts."""


def test_t15_rolling_deploy_costs_no_attempt_and_every_exit_is_bounded(arena: Arena) -> None:
    seconds = form.seconds(300)
    grace = 3.0
    arena.fleet(6, 3, grace=grace).start()
    exits: list[float] = []
    watchers: list[threading.Thread] = []

    def deploy_one() -> bool:
        """The oldest worker has to go, as in a rolling deploy."""
        workers = arena.database.all(
            "SELECT pid FROM workers WHERE state = 'running' AND stopped_at IS NULL ORDER BY started_at LIMIT 1"
        )
        if not workers:
            return False
        process = psutil.Process(workers[0]["pid"])
        watchers.append(threading.Thread(target=watch, args=(process, time.monotonic())))
        watchers[-1].start()
        process.terminate()
        return True

    def watch(process: psutil.Process, since: float) -> None:
        process.wait(60)
        exits.append(time.monotonic() - since)

    with (
        arena.offered("nap", {"seconds": 0.3}, per_second=30),
        repeatedly(5.0, lambda: arena.enqueue("sleep", {"seconds": 20}, max_attempts=1)),
        repeatedly(5.0, deploy_one) as deploys,
    ):
        time.sleep(seconds)
    for watcher in watchers:
        watcher.join(60)
    arena.until_done(300)

    arena.judge(
        "T15",
        "30 jobs/s and long ones, 6 workers",
        f"{deploys.count} x SIGTERM in rolling order",
        slowest_exit_s=max(exits),
        attempts_charged=arena.database.value("SELECT count(*) FROM job_runs WHERE outcome IN ('retried', 'dead')"),
        handed_back=arena.database.value("SELECT count(*) FROM job_runs WHERE outcome = 'released'"),
    )
    assert max(exits) <= form.bound(grace + MARGIN)
    assert arena.database.all("SELECT FROM job_runs WHERE outcome IN ('retried', 'dead', 'lost')") == []


@pytest.fixture
def proxy(arena: Arena, server: TortureServer) -> Iterator[Proxy]:
    with proxy_to(database_dsn(server.tcp_url, str(conninfo_to_dict(arena.dsn)["dbname"]))) as proxy:
        yield proxy


@pytest.fixture
def worker_log(arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LEDGER_VARIABLE, str(arena.ledger.path))
    return tmp_path / "worker.log"


def worker_of(arena: Arena, dsn: str, log: Path) -> WorkerProcess:
    settings = {"grace": GRACE, "heartbeat": 0.5, "stale_limit": 20, "concurrency": 2}
    arena.database.dsn, own = dsn, arena.database.dsn
    try:
        return WorkerProcess(arena.database, log, apps=(APP,), **settings)
    finally:
        arena.database.dsn = own


@pytest.mark.parametrize("database", ["there", "cut off", "silent", "never there", "always silent"])
@pytest.mark.parametrize("job", ["none", "sleep", "nap", "deaf", "spin"])
def test_exit_is_bounded_in_every_state(arena: Arena, proxy: Proxy, worker_log: Path, database: str, job: str) -> None:
    if database in WITHOUT:
        if job != "none":
            pytest.skip("without a database there is no job")
        WITHOUT[database](proxy)
    elif job != "none":
        arena.enqueue(job, {"seconds": 60}, count=3)
    worker = worker_of(arena, proxy.url, worker_log)
    try:
        if database in WITHOUT:
            eventually(lambda: tried_again(proxy), timeout=60)
        else:
            worker.wait_until_ready()
            eventually(lambda: job == "none" or any(arena.ledger.entries("start")), timeout=60)
        if database == "cut off":
            proxy.cut()
        elif database == "silent":
            proxy.swallow()
        begun = time.monotonic()
        code = worker.stop(timeout=30)
        took = time.monotonic() - begun
    finally:
        worker.kill_all()
    arena.judge(f"Exit, job {job}, database {database}", "1 worker", f"SIGTERM, grace {GRACE:g} s", exit_after_s=took)
    assert code == 0
    assert took <= form.bound(GRACE + MARGIN)
    if database == "there":
        assert arena.database.all("SELECT FROM jobs WHERE status = 'running'") == []
        assert arena.database.all("SELECT FROM jobs WHERE attempts > 0") == []


@pytest.mark.parametrize("database", ["there", "silent"])
def test_supervisor_leaves_within_the_grace_in_every_state(arena: Arena, proxy: Proxy, database: str) -> None:
    fleet = arena.fleet(3, 2, dsn=proxy.url, grace=GRACE, stale_limit=20.0).start()
    arena.enqueue("deaf", count=2)
    arena.enqueue("nap", {"seconds": 60}, count=4)
    eventually(lambda: len(list(arena.ledger.entries("start"))) >= 6, timeout=60)
    if database == "silent":
        proxy.swallow()
    took = fleet.stop()

    arena.judge(f"Supervisor's exit, database {database}", "3 busy workers", "asked to stop", exit_after_s=took)
    assert took <= form.bound(GRACE + MARGIN)
    assert fleet.runner_processes() == []


CONSOLE = "from pgq_tui.cli import main; main()"
PROGRAMS = {
    "maintain": ("-m", "pgq_core.cli", "maintain"),
    "api": ("-m", "pgq_core.cli", "api", "serve", "--port", "0"),
    "supervise": ("-c", CONSOLE, "supervise", "--host", "leaving", "--pools", "POOLS"),
    "console": ("-c", CONSOLE, "--read-only"),
}
SESSIONS = """
SELECT count(*)
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND application_name LIKE 'pgq%%'
   AND application_name <> 'pgq schema check'
   AND pid <> pg_backend_pid()
"""


@pytest.mark.parametrize("database", ["there", "cut off", "silent", "never there", "always silent"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_other_program_leaves_in_time(
    arena: Arena, proxy: Proxy, tmp_path: Path, program: str, database: str
) -> None:
    """Worker and supervisor with jobs in hand have their own runs; the console is left by its key."""
    if database in WITHOUT:
        WITHOUT[database](proxy)
    environment = {**os.environ, **FAST, "DATABASE_URL": proxy.url, "PGQ_GRACE": f"{GRACE:g}", "TERM": "xterm-256color"}
    pools = tmp_path / "pools.toml"
    pools.write_text(f"[pools.torture]\napp = '{APP}'\nwanted = 0\n")
    arguments = [str(pools) if argument == "POOLS" else argument for argument in PROGRAMS[program]]
    terminal = pexpect.spawn(sys.executable, arguments, env=environment, cwd=str(ROOT), timeout=60)
    try:
        if database in WITHOUT:
            eventually(lambda: said(terminal) and tried_again(proxy), timeout=60)
        else:
            eventually(lambda: said(terminal) and arena.database.value(SESSIONS) > 0, timeout=60)
        if database == "cut off":
            proxy.cut()
        elif database == "silent":
            proxy.swallow()
        begun = time.monotonic()
        if program == "console":
            terminal.send("q")
        else:
            terminal.kill(signal.SIGTERM)
        terminal.expect(pexpect.EOF)
        terminal.wait()
        took = time.monotonic() - begun
    finally:
        terminal.close(force=True)
    arena.judge(
        f"Exit of {program}, database {database}", "idle", f"asked to leave, grace {GRACE:g} s", exit_after_s=took
    )
    assert took <= form.bound(GRACE + MARGIN)
    assert terminal.exitstatus == 0 or terminal.signalstatus == signal.SIGTERM  # it may not listen for signals yet


def tried_again(proxy: Proxy) -> bool:
    """The look at the start is over, and the program itself waits for the database."""
    return proxy.refused >= 5 or proxy.opened >= 3


def said(terminal: pexpect.spawn[bytes]) -> bool:
    """Reads what the program has written, so that it can go on writing; whether it lives."""
    with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
        terminal.read_nonblocking(65536, timeout=0)
    return bool(terminal.isalive())


@pytest.mark.parametrize("how", ["gone", "Ctrl-C", "Ctrl-C twice"])
def test_worker_in_a_terminal_hands_its_jobs_back(arena: Arena, tmp_path: Path, how: str) -> None:
    environment = {**os.environ, **FAST, "DATABASE_URL": arena.dsn, LEDGER_VARIABLE: str(arena.ledger.path)}
    environment |= {"PGQ_GRACE": "2", "PGQ_STALE_LIMIT": "5"}
    arena.enqueue("nap", {"seconds": 60}, count=4)
    terminal = pexpect.spawn(
        sys.executable, ["-m", "tests.worker.program", APP], env=environment, cwd=str(ROOT), timeout=60
    )
    process = psutil.Process(terminal.pid)
    eventually(lambda: any(arena.ledger.entries("start")), timeout=60)
    runners = process.children()
    begun = time.monotonic()
    if how == "gone":
        os.close(terminal.child_fd)
    else:
        terminal.sendintr()
        if how == "Ctrl-C twice":
            terminal.expect("worker_stopping")  # two equal signals in a row may arrive as one
            terminal.sendintr()
        terminal.expect(pexpect.EOF)
    eventually(lambda: has_ended(process), timeout=30)
    took = time.monotonic() - begun

    arena.judge(f"Terminal {how}", "1 worker, 4 jobs", how, exit_after_s=took)
    assert took <= form.bound(2 + MARGIN)
    assert all(has_ended(runner) for runner in runners)
    rows = arena.database.all("SELECT status, attempts FROM jobs")
    assert [(row["status"], row["attempts"]) for row in rows] == [("pending", 0)] * 4


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_t27_unknown_kinds_wait_unspent_through_a_rolling_update(arena: Arena, tmp_path: Path) -> None:
    old = tmp_path / "old.py"
    old.write_text("from pgq_core.handlers import Registry\nfrom tests.torture.jobs import nap\n\n" + OLD)
    for first, second in ((str(old), APP), (APP, str(old))):
        before = arena.fleet(
            2, 2, host=f"before-{Path(first).stem}", app=first if first == APP else f"{first}:registry"
        )
        before.start()
        fresh = arena.enqueue("noop", count=50)
        arena.enqueue("nap", {"seconds": 0.1}, count=50)
        after = arena.fleet(
            2, 2, host=f"after-{Path(second).stem}", app=second if second == APP else f"{second}:registry"
        )
        after.start()
        arena.until_done(120)
        before.stop()
        after.stop()
        assert arena.database.value("SELECT count(*) FROM job_runs WHERE job_id = ANY(%s)", fresh) == len(fresh)
    unknown = arena.enqueue("nobody knows it", max_attempts=1)
    alone = arena.fleet(1, 2, host="alone").start()
    arena.enqueue("noop", count=20)
    eventually(lambda: arena.database.value("SELECT count(*) FROM jobs") == 1, timeout=60)

    arena.judge("T27", "200 jobs", "old and new workers in both orders", restarts=len(alone.crashed_by_itself()))
    row = arena.database.one("SELECT id, status, attempts FROM jobs")
    assert (row["id"], row["status"], row["attempts"]) == (unknown[0], "pending", 0)
    assert arena.database.all("SELECT FROM job_runs WHERE outcome <> 'succeeded'") == []


OLD = """
registry = Registry()
registry.add(nap)
"""


def test_worker_that_hears_every_signal_at_once_still_leaves(arena: Arena, proxy: Proxy, worker_log: Path) -> None:
    arena.enqueue("sleep", {"seconds": 60}, count=2)
    worker = worker_of(arena, proxy.url, worker_log)
    try:
        worker.wait_until_ready()
        eventually(lambda: any(arena.ledger.entries("start")), timeout=60)
        begun = time.monotonic()
        for _ in range(20):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                worker.process.send_signal(number)
        worker.process.wait(30)
        took = time.monotonic() - begun
    finally:
        worker.kill_all()
    arena.judge("Signal storm", "1 worker", "60 signals", exit_after_s=took)
    assert took <= form.bound(GRACE + MARGIN)
