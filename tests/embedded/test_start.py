"""Starting and finding the embedded server."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer, EmbeddedServerUnavailable, OlderDataDirectory
from pgq_core.embedded.server import default_home
from tests.support.databases import FAST

START = """
import sys, pathlib
from pgq_core.embedded import EmbeddedServer
server = EmbeddedServer(home=pathlib.Path(sys.argv[1]))
server.start()
print(server.status().pid)
"""


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()  # type: ignore[arg-type]
        assert row is not None
        return row[0]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_first_start_makes_a_utf8_database_that_answers(empty_home: Path) -> None:
    server = EmbeddedServer(home=empty_home, settings=FAST)

    url = server.start()

    assert ask(url, "SELECT current_database()") == "pgq"
    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SHOW data_checksums") == "on"
    assert ask(url, "SELECT datlocale FROM pg_database WHERE datname = 'pgq'") == "C.UTF-8"
    assert ask(url, "SHOW max_connections") == "200"
    assert str(ask(url, "SHOW server_version")).startswith("18.")


def test_only_the_owner_can_reach_files_sockets_and_password(empty_home: Path) -> None:
    server = EmbeddedServer(home=empty_home, settings=FAST)

    server.start()

    directory = empty_home / "main"
    assert mode_of(directory) == 0o700
    assert mode_of(directory / "socket") == 0o700
    assert mode_of(directory / "data") == 0o700
    assert mode_of(directory / "password") == 0o600


def test_no_right_of_a_directory_above_is_changed(empty_home: Path) -> None:
    above = [*empty_home.parents, *Path(sys.executable).parents, *Path(sys.executable).resolve().parents]
    before = {path: path.stat().st_mode for path in above}

    EmbeddedServer(home=empty_home, settings=FAST).start()

    assert {path: path.stat().st_mode for path in above} == before


def test_second_process_finds_the_running_server(server: EmbeddedServer, used_home: Path) -> None:
    url = server.start()

    other = EmbeddedServer(home=used_home)

    assert other.start() == url
    assert other.status().pid == server.status().pid


def test_starters_at_the_same_moment_get_one_server(empty_home: Path) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", START, str(empty_home)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    pids = {starter.communicate(timeout=120)[0].strip() for starter in starters}

    assert pids == {str(EmbeddedServer(home=empty_home).status().pid)}


def test_two_names_in_one_home_are_two_servers(used_home: Path) -> None:
    shutil.copytree(used_home / "main", used_home / "demo")

    main = EmbeddedServer("main", used_home, settings=FAST).start()
    demo = EmbeddedServer("demo", used_home, settings=FAST).start()

    assert main != demo
    assert ask(main, "SHOW data_directory") != ask(demo, "SHOW data_directory")


def test_tcp_needs_the_password_and_the_repr_of_a_status_hides_it(server: EmbeddedServer) -> None:
    server.start()
    status = server.status()
    assert status.tcp_url is not None

    assert ask(status.tcp_url, "SELECT 1") == 1
    password = status.tcp_url.partition("pgq:")[2].partition("@")[0]
    assert password not in repr(status)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(status.tcp_url.replace(password, "wrong"), "SELECT 1")


def test_port_stays_the_same_over_restarts(server: EmbeddedServer) -> None:
    first = server.start()
    server.stop()

    assert server.start() == first


def test_port_that_somebody_else_took_is_replaced(server: EmbeddedServer, used_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (used_home / "main" / "port").write_text(str(port))

        url = server.start()

    assert f"port={port}" not in url
    assert ask(url, "SELECT 1") == 1


def test_home_with_a_long_path_gets_its_sockets_elsewhere(used_home: Path) -> None:
    deep = used_home / ("a" * 60) / ("b" * 60)
    deep.mkdir(parents=True)
    (used_home / "main").rename(deep / "main")
    server = EmbeddedServer(home=deep, settings=FAST)

    url = server.start()

    sockets = (deep / "main" / "socket").readlink()
    assert ask(url, "SELECT 1") == 1
    assert str(deep) not in url
    assert mode_of(sockets) == 0o700
    server.stop()
    assert not sockets.exists()


@pytest.mark.parametrize("name", ["Jörg's 日記", '$HOME `ls` "x" \\ 50%41; &', "one, two"])
def test_home_may_have_spaces_quotes_and_letters_of_any_language(used_home: Path, name: str) -> None:
    odd = used_home / name
    odd.mkdir()
    (used_home / "main").rename(odd / "main")

    url = EmbeddedServer(home=odd, settings=FAST).start()

    assert ask(url, "SELECT 1") == 1


def test_settings_of_the_callers_own_server_do_not_steer_ours(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGDATA": "/nowhere",
        "PGPORT": "1",
        "PGHOST": "nowhere",
        "PGUSER": "x",
        "PGDATABASE": "y",
    }.items():
        monkeypatch.setenv(name, value)

    assert ask(server.start(), "SELECT current_user || '/' || current_database()") == "pgq/pgq"


def test_dropped_database_is_made_again(server: EmbeddedServer) -> None:
    url = server.start()
    with psycopg.connect(url, dbname="postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE pgq WITH (FORCE)")

    assert ask(server.start(), "SELECT current_database()") == "pgq"


def test_sockets_that_were_swept_away_leave_tcp(server: EmbeddedServer, used_home: Path) -> None:
    server.start()
    for path in (used_home / "main" / "socket").iterdir():
        path.unlink()

    url = server.start()

    assert url == server.status().tcp_url
    assert ask(url, "SELECT 1") == 1


def test_data_of_an_older_major_version_is_named_with_the_way_to_keep_it(
    server: EmbeddedServer, used_home: Path
) -> None:
    (used_home / "main" / "data" / "PG_VERSION").write_text("17\n")

    with pytest.raises(OlderDataDirectory, match=r"PostgreSQL 17.*\n.*pg_dump") as caught:
        server.start()

    assert caught.value.found == "17"
    assert caught.value.data_directory == used_home / "main" / "data"


def test_platform_without_binaries_is_told_to_set_database_url(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(EmbeddedServerUnavailable, match="set DATABASE_URL"):
        server.start()


def test_server_that_cannot_start_says_why(used_home: Path) -> None:
    server = EmbeddedServer(home=used_home, settings={"shared_buffers": "many"})

    with pytest.raises(Exception, match=r'invalid value for parameter "shared_buffers"'):
        server.start()


def test_home_that_cannot_be_written_is_named(used_home: Path) -> None:
    file = used_home / "file"
    file.touch()

    with pytest.raises(EmbeddedServerUnavailable, match=r"cannot be written.*set DATABASE_URL"):
        EmbeddedServer(home=file).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write into the directories of others")
def test_root_leaves_no_files_in_the_home_of_another_user(server: EmbeddedServer, used_home: Path) -> None:
    os.chown(used_home / "main", 65534, 65534)

    with pytest.raises(EmbeddedServerUnavailable, match="belongs to user 65534"):
        server.start()

    os.chown(used_home / "main", 0, 0)


def test_name_cannot_lead_out_of_the_home() -> None:
    with pytest.raises(ValueError, match="cannot name a server"):
        EmbeddedServer("../elsewhere")


def test_home_is_pgq_home_or_the_users_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGQ_HOME", str(tmp_path))
    assert default_home() == tmp_path

    monkeypatch.delenv("PGQ_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_home().name == "pgq-tui"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may not run PostgreSQL as itself")
@pytest.mark.skipif(sys.platform != "linux", reason="user namespaces are Linux's")
def test_server_started_by_root_has_no_rights_of_root(server: EmbeddedServer) -> None:
    server.start()

    facts = Path(f"/proc/{server.status().pid}/status").read_text()

    assert "CapEff:\t0000000000000000" in facts
