"""One server for a test session, and a database of its own for every test."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgq_core.embedded import EmbeddedServer

HOME_PREFIX = "pgq-test-"
PLACES = (Path("/dev/shm"), Path("/tmp"))
"""Where homes of servers may lie, the best first."""
ROOM = 4 * 2**30
"""Bytes that all servers of a run may need, and that have to be left besides."""
# Nothing in a test's database has to survive the machine, only the processes on it.
FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "200"}

FILES = "TEST_SERVER_FILES"
"""Names, to all processes of a test run, the directory with the files of a server that is made ready once."""

_numbers = itertools.count(1)


@contextlib.contextmanager
def session_home() -> Iterator[Path]:
    """A directory for everything that this test process keeps; servers that run in it are stopped at the end."""
    _sweep_homes_of_killed_sessions()
    home = _own_directory()
    try:
        yield home
    finally:
        _remove_home(home)


def set_up_shared_files() -> None:
    """Before other test processes are started: they inherit where the files are."""
    if FILES not in os.environ:
        os.environ[FILES] = str(_own_directory())


def remove_shared_files() -> None:
    directory = Path(os.environ.get(FILES, ""))
    if directory.name.startswith(f"{HOME_PREFIX}{os.getpid()}-"):
        del os.environ[FILES]
        _remove_home(directory)


def ready_server(name: str, home: Path, settings: Mapping[str, str] = FAST) -> EmbeddedServer:
    """Not started. Where it has no files yet, it gets a copy of those made once: initdb costs ten times that."""
    files, place = Path(os.environ[FILES]), home / name
    with (files / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not (files / "made").exists():
            made = EmbeddedServer("main", files, settings=FAST)
            made.start()
            made.stop()
            (files / "main" / "port").unlink()  # not the same for all copies
            (files / "made").touch()
    if not place.exists():
        shutil.copytree(files / "main", place, symlinks=True)
    return EmbeddedServer(name, home, settings=settings)


@contextlib.contextmanager
def test_server(home: Path) -> Iterator[str]:
    """The DSN of `PGQ_TEST_DSN`, or of an embedded server that this session has for itself."""
    given = os.environ.get("PGQ_TEST_DSN")
    if given:
        yield given
        return
    with ready_server("tests", home).lease() as dsn:
        yield dsn


@contextlib.contextmanager
def new_database(server_dsn: str, *, template: str = "template0", search_path: str | None = None) -> Iterator[str]:
    """A database copied from `template`; dropped afterwards, whoever is still connected."""
    name = create_database(server_dsn, template=template, search_path=search_path)
    try:
        yield database_dsn(server_dsn, name)
    finally:
        drop_database(server_dsn, name)


def create_database(server_dsn: str, *, template: str = "template0", search_path: str | None = None) -> str:
    """Answers its name."""
    name = new_name()
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        # Without fsync a copy of files took 20 ms, the default 26 to 67 ms. PostgreSQL 14 has no choice.
        strategy = sql.SQL(" STRATEGY file_copy" if connection.info.server_version >= 150_000 else "")
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)) + strategy
        )
        if search_path is not None:
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET search_path = {}, public").format(
                    sql.Identifier(name), sql.Identifier(search_path)
                )
            )
    return name


def new_name() -> str:
    """Of a database, unlike those of all other test processes on the server."""
    return f"pgq_test_{os.getpid()}_{next(_numbers)}"


def drop_database(server_dsn: str, name: str) -> None:
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def database_dsn(server_dsn: str, name: str) -> str:
    """The same server, another database; a URL stays a URL."""
    if "://" not in server_dsn:
        return make_conninfo(server_dsn, dbname=name)
    return urlunsplit(urlsplit(server_dsn)._replace(path=f"/{name}"))


def database_name(dsn: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


def _own_directory() -> Path:
    """In memory where there is plenty: copying the files of a server or a database costs a tenth there."""
    memory, disk = PLACES
    with contextlib.suppress(OSError):
        if shutil.disk_usage(memory).free > ROOM and psutil.virtual_memory().available > 2 * ROOM:
            disk = memory
    return Path(tempfile.mkdtemp(prefix=f"{HOME_PREFIX}{os.getpid()}-", dir=disk))


def _sweep_homes_of_killed_sessions() -> None:
    for home in (home for place in PLACES for home in place.glob(f"{HOME_PREFIX}*")):
        # Another session may be sweeping too, or just be leaving.
        with contextlib.suppress(OSError):
            owner = int(home.name.removeprefix(HOME_PREFIX).partition("-")[0])
            if home.stat().st_uid == os.geteuid() and not psutil.pid_exists(owner):
                _remove_home(home)


def _remove_home(home: Path) -> None:
    for lock in home.glob("**/lock"):
        EmbeddedServer(lock.parent.name, lock.parent.parent).stop()
    shutil.rmtree(home, ignore_errors=True)
