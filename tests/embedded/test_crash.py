"""What is left behind by killed servers and killed starters must not keep the next start from working."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer
from pgq_core.embedded.postmaster import serves
from tests.embedded.test_start import START, ask
from tests.support.databases import FAST
from tests.support.signals import suspend
from tests.support.waiting import eventually


@contextlib.contextmanager
def foreign_process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


def claim_that_a_server_runs(home: Path, pid: int) -> None:
    data = home / "main" / "data"
    lines = [pid, data, 1700000000, 54321, home / "main" / "socket", "127.0.0.1", "  1234567    123", "ready   "]
    (data / "postmaster.pid").write_text("".join(f"{line}\n" for line in lines))


def test_killed_server_is_started_again_with_all_that_was_committed(server: EmbeddedServer) -> None:
    url = server.start()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    pid = server.status().pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    assert ask(server.start(), "SELECT answer FROM kept") == 42
    assert server.status().pid != pid


def test_server_killed_with_all_its_processes_is_started_again(server: EmbeddedServer) -> None:
    server.start()
    postmaster = psutil.Process(server.status().pid)

    for process in [postmaster, *postmaster.children()]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()

    assert ask(server.start(), "SELECT 1") == 1


def test_stale_pid_file_whose_number_now_is_somebody_else(server: EmbeddedServer, used_home: Path) -> None:
    with foreign_process() as other:
        claim_that_a_server_runs(used_home, other.pid)
        assert not server.status().running

        url = server.start()

        assert ask(url, "SELECT 1") == 1
        server.stop()
        assert other.poll() is None


def test_stop_never_touches_the_process_that_a_stale_pid_file_names(server: EmbeddedServer, used_home: Path) -> None:
    with foreign_process() as other:
        claim_that_a_server_runs(used_home, other.pid)

        server.stop()

        assert other.poll() is None


def test_stale_pid_file_whose_number_is_a_zombie(server: EmbeddedServer, used_home: Path) -> None:
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    eventually(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE)
    claim_that_a_server_runs(used_home, zombie.pid)

    assert ask(server.start(), "SELECT 1") == 1
    zombie.wait()


@pytest.mark.parametrize("text", ["", "17", "not a number\n" * 8])
def test_pid_file_that_was_cut_short(server: EmbeddedServer, used_home: Path, text: str) -> None:
    (used_home / "main" / "data" / "postmaster.pid").write_text(text)

    assert ask(server.start(), "SELECT 1") == 1


def test_half_made_data_directory_is_made_anew(empty_home: Path) -> None:
    half = empty_home / "main" / "data.new-1234"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")

    assert ask(EmbeddedServer(home=empty_home, settings=FAST).start(), "SELECT 1") == 1
    assert not half.exists()


def test_server_outlives_a_killed_starter(used_home: Path) -> None:
    waits = f"{START}sys.stdout.flush(); sys.stdin.read()"
    starter = subprocess.Popen(
        [sys.executable, "-c", waits, str(used_home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())

    starter.kill()
    starter.communicate()

    status = EmbeddedServer(home=used_home).status()
    assert status.pid == pid
    assert status.url is not None
    assert ask(status.url, "SELECT 1") == 1


@pytest.mark.system
def test_starter_killed_at_any_moment_leaves_a_home_that_starts(empty_home: Path) -> None:
    for moment in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8):
        starter = subprocess.Popen([sys.executable, "-c", START, str(empty_home)], stdout=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            starter.wait(moment)
        starter.kill()
        starter.wait()

    server = EmbeddedServer(home=empty_home)

    assert ask(server.start(), "SELECT current_database()") == "pgq"
    assert servers_on(empty_home / "main" / "data") == [server.status().pid]


def test_whoever_leaves_a_frozen_server_is_told_and_does_not_wait_for_it(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    asked: list[str] = []

    with server.lease(on_silence=said.append):
        pid = server.status().pid
        assert pid is not None
        suspend(pid)
        monkeypatch.setattr("pgq_core.embedded.server._server_version", lambda url, *_: asked.append(url))

    try:
        assert said == [f"the embedded server (process {pid}) does not answer and was left as it is"]
        assert asked == []
    finally:
        os.kill(pid, signal.SIGCONT)


def servers_on(data: Path) -> list[int]:
    return [pid for pid in psutil.pids() if serves(pid, data)]


def test_starter_waits_for_a_server_that_another_one_has_begun_to_start(server: EmbeddedServer) -> None:
    """The first starter dies between the launch and the readiness: the server itself is held back by a stop signal."""
    server.start()
    pid = server.status().pid
    assert pid is not None
    suspend(pid)
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(server.start)
        with pytest.raises(TimeoutError):
            starting.result(0.5)
        os.kill(pid, signal.SIGCONT)

        assert ask(starting.result(30), "SELECT 1") == 1
    assert server.status().pid == pid
