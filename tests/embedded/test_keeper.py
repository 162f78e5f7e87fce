"""A server that dies under its users comes back by itself, where it was; one that was stopped stays away."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer, keeper
from pgq_core.embedded.errors import EmbeddedServerFailed
from pgq_core.embedded.postmaster import serves
from tests.embedded.test_start import ask
from tests.support.databases import FAST
from tests.support.waiting import eventually

UserProcess = Callable[[], "subprocess.Popen[str]"]
RECOVERY = 60.0


def kill(server: EmbeddedServer) -> int:
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def has_come_back(server: EmbeddedServer, killed: int) -> bool:
    status = server.status()
    return status.url is not None and status.pid != killed


def test_killed_server_comes_back_where_it_was_with_all_that_was_committed(server: EmbeddedServer) -> None:
    with server.lease() as url:
        tcp_url = server.status().tcp_url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

        killed = kill(server)

        eventually(lambda: has_come_back(server, killed), RECOVERY)
        assert (server.status().url, server.status().tcp_url) == (url, tcp_url)
        assert ask(url, "SELECT answer FROM kept") == 42

    assert not server.status().running


def test_one_of_many_users_starts_it_and_the_others_find_it(server: EmbeddedServer, user_process: UserProcess) -> None:
    users = [user_process() for _ in range(3)]
    data = server.status().data_directory

    for _ in range(2):
        killed = kill(server)
        eventually(lambda killed=killed: has_come_back(server, killed), RECOVERY)  # type: ignore[misc]
        assert [pid for pid in psutil.pids() if serves(pid, data)] == [server.status().pid]

    assert server.status().users == tuple(sorted(user.pid for user in users))


def test_server_that_was_stopped_on_purpose_stays_away_until_somebody_starts_it(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = threading.Semaphore(0)
    look = EmbeddedServer._is_down

    def counted(self: EmbeddedServer) -> bool:
        looks.release()
        return look(self)

    monkeypatch.setattr(keeper, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(EmbeddedServer, "_is_down", counted)
    with server.lease() as url:
        server.stop()
        while looks.acquire(blocking=False):
            pass
        for _ in range(5):
            assert looks.acquire(timeout=60)
        assert not server.status().running

        server.start()
        killed = kill(server)

        eventually(lambda: has_come_back(server, killed), RECOVERY)
        assert ask(url, "SELECT 1") == 1


def test_start_that_fails_is_tried_again(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LOOK_SECONDS", 0.02)
    with server.lease():
        version = server.status().data_directory / "PG_VERSION"
        told = version.read_text()
        version.write_text("9\n")
        tries = threading.Semaphore(0)
        revive = EmbeddedServer._revive

        def counted(self: EmbeddedServer, is_wanted: Callable[[], bool]) -> None:
            try:
                revive(self, is_wanted)
            except Exception:
                tries.release()
                raise

        monkeypatch.setattr(EmbeddedServer, "_revive", counted)
        # The thread has the method of its lease: another lease gets the counted one.
        with server.lease():
            killed = kill(server)
            for _ in range(2):
                assert tries.acquire(timeout=60)
            assert not server.status().running
            version.write_text(told)

            eventually(lambda: has_come_back(server, killed), RECOVERY)


def test_pauses_grow_while_the_start_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return len(pauses) == 8

    def fail(_: Callable[[], bool]) -> None:
        raise EmbeddedServerFailed("does not start")

    keeper._keep(Clock(), lambda: True, fail)

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_server_whose_files_were_removed_is_not_made_anew(server: EmbeddedServer, used_home: Path) -> None:
    with server.lease():
        server.stop()
        (used_home / "main" / "stopped").unlink()
        (used_home / "main" / "data").rename(used_home / "main" / "away")

        assert not server._is_down()


def test_socket_in_a_short_directory_is_found_again_after_a_crash(home: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="k-", dir=home) as directory:
        server = EmbeddedServer(home=Path(directory) / ("deep" * 20), settings=FAST)
        with server.lease() as url:
            assert "/tmp/pgq-" in url.replace("%2F", "/")
            killed = kill(server)

            eventually(lambda: has_come_back(server, killed), RECOVERY)
            assert server.status().url == url
