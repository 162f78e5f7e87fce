"""The server lives while somebody uses it, and the last one to leave stops it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer
from tests.embedded.test_start import ask
from tests.support.waiting import eventually

UserProcess = Callable[[], "subprocess.Popen[str]"]


def test_server_runs_under_a_lease_and_stops_with_the_last_one(server: EmbeddedServer) -> None:
    with server.lease() as url:
        assert ask(url, "SELECT 1") == 1
        assert server.status().users == (os.getpid(),)

    assert not server.status().running
    assert server.status().users == ()


def test_server_that_was_started_to_stay_outlives_the_last_lease(server: EmbeddedServer, used_home: Path) -> None:
    """As `pgq-core url` starts it: who takes the address may come back to it at any time."""
    url = server.start()
    try:
        with server.lease(), EmbeddedServer(home=used_home).lease():
            pass
        assert ask(url, "SELECT 1") == 1
    finally:
        server.stop()
    with server.lease():
        pass
    assert not server.status().running


def test_server_under_a_lease_can_be_asked_to_stay(server: EmbeddedServer) -> None:
    with server.lease():
        url = server.start()
    try:
        assert ask(url, "SELECT 1") == 1
    finally:
        server.stop()


def test_first_of_two_leavers_leaves_the_server_running(server: EmbeddedServer, used_home: Path) -> None:
    other = EmbeddedServer(home=used_home)

    with server.lease() as url:
        with other.lease() as same:
            assert same == url
        assert server.status().running
        assert ask(url, "SELECT 1") == 1

    assert not server.status().running


def test_lease_of_another_process_keeps_the_server(server: EmbeddedServer, user_process: UserProcess) -> None:
    other = user_process()

    with server.lease():
        assert server.status().users == tuple(sorted((os.getpid(), other.pid)))

    assert server.status().users == (other.pid,)
    assert server.status().running
    other.communicate()
    assert not server.status().running


def test_killed_user_gives_its_lease_back(server: EmbeddedServer, user_process: UserProcess) -> None:
    other = user_process()

    other.kill()
    other.communicate()

    assert server.status().users == ()
    assert server.status().running
    with server.lease():
        pass
    assert not server.status().running


def test_client_without_a_lease_keeps_the_server(server: EmbeddedServer) -> None:
    with server.lease() as url:
        client = psycopg.connect(url)

    assert server.status().running
    client.execute("SELECT 1")
    client.close()
    with server.lease():
        pass
    assert not server.status().running


def test_connection_closed_just_before_leaving_does_not_keep_the_server(server: EmbeddedServer) -> None:
    with server.lease() as url:
        for client in [psycopg.connect(url) for _ in range(20)]:
            client.close()

    assert not server.status().running


def test_lease_is_given_back_when_the_block_fails(server: EmbeddedServer) -> None:
    with pytest.raises(RuntimeError, match="boom"), server.lease():
        raise RuntimeError("boom")

    assert not server.status().running


def test_lease_is_given_back_when_the_server_does_not_start(used_home: Path) -> None:
    server = EmbeddedServer(home=used_home, settings={"shared_buffers": "many"})

    with pytest.raises(Exception, match="does not start"), server.lease():
        pass

    assert server.status().users == ()


@pytest.mark.slow
def test_newcomers_and_leavers_never_miss_each_other(used_home: Path, user_process: UserProcess) -> None:
    """Each newcomer arrives while the last leaver may be stopping the server; it must get one that answers."""
    for _ in range(5):
        leaver = user_process()
        assert leaver.stdin is not None
        leaver.stdin.close()
        newcomer = user_process()
        status = EmbeddedServer(home=used_home).status()
        assert status.url is not None
        assert ask(status.url, "SELECT 1") == 1
        assert newcomer.pid in status.users
        newcomer.communicate()

    eventually(lambda: not EmbeddedServer(home=used_home).status().running)


def test_server_that_was_only_started_waits_for_an_explicit_stop(server: EmbeddedServer) -> None:
    server.start()
    assert server.status().users == ()
    assert server.status().running

    server.stop()
    server.stop()

    assert not server.status().running
