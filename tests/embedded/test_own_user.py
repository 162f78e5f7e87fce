"""Root where no user namespace is allowed, as in most containers: the server runs as a user of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from pgq_core.embedded import EmbeddedServer, EmbeddedServerUnavailable, account
from tests.embedded.test_start import ask, mode_of
from tests.support.databases import FAST

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as somebody else"),
    pytest.mark.skipif(sys.platform != "linux", reason="uses useradd"),
    pytest.mark.system,
]


@pytest.fixture
def own_user_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A system without user namespaces; the own user's files are in a directory that everybody may pass through."""
    directory = Path(tempfile.mkdtemp(prefix="pgq-own-", dir="/tmp"))
    directory.chmod(0o755)
    known = {user.pw_name for user in pwd.getpwall()}
    monkeypatch.setattr(account, "OWN_USER_HOME", directory)
    monkeypatch.setattr(account, "namespaces_are_allowed", lambda: False)
    yield directory
    shutil.rmtree(directory)
    if account.OWN_USER not in known:
        program = shutil.which("userdel", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "userdel"
        subprocess.run([program, account.OWN_USER], check=False, capture_output=True)


def test_server_runs_as_its_own_user_with_copied_programs(empty_home: Path, own_user_home: Path) -> None:
    server = EmbeddedServer(home=empty_home, settings=FAST)

    with server.lease() as url:
        assert ask(url, "SELECT current_database()") == "pgq"
        status = server.status()
        assert psutil.Process(status.pid).username() == account.OWN_USER
        assert status.data_directory.is_relative_to(own_user_home)
        assert mode_of(status.data_directory.parent) == 0o700
        assert status.tcp_url is not None
        assert ask(status.tcp_url, "SELECT 1") == 1

    assert not server.status().running


def test_next_start_finds_the_own_users_data(empty_home: Path, own_user_home: Path) -> None:
    server = EmbeddedServer(home=empty_home, settings=FAST)
    with server.lease() as url, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS answer")

    again = EmbeddedServer(home=empty_home, settings=FAST)

    with again.lease() as url:
        assert ask(url, "SELECT answer FROM kept") == 7


def test_programs_that_the_own_user_cannot_reach_stay_as_closed_as_they_were(
    empty_home: Path, own_user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = empty_home / "closed"
    closed.mkdir(mode=0o700)
    found = account.Binaries(_copy_of_binaries(closed), "18.0.0")

    reachable = account.choose_account(empty_home / "main").reachable(found)

    assert reachable.directory.is_relative_to(own_user_home)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_data_made_in_a_namespace_is_never_silently_left_behind(used_home: Path, own_user_home: Path) -> None:
    with pytest.raises(EmbeddedServerUnavailable, match="made in a user namespace"):
        EmbeddedServer(home=used_home, settings=FAST).start()


def _copy_of_binaries(target: Path) -> Path:
    from pgq_core.embedded.binaries import find_binaries

    return Path(shutil.copytree(find_binaries().directory, target / "pginstall"))
