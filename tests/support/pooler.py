"""PgBouncer in transaction mode before a test's database; as root, too."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgq_core.embedded import EmbeddedServer
from tests.support.waiting import eventually

NOBODY = "nobody"


@contextlib.contextmanager
def pooler_before(dsn: str, home: Path, *, sessions: int = 3) -> Iterator[str]:
    """The same database through a pooler with a few server sessions."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # PgBouncer refuses to run as root; whom it then runs as reads its configuration in a directory of its own.
    with tempfile.TemporaryDirectory(prefix="pgq-pooler-", dir="/tmp") as directory:
        given = _reachable(dsn, home)
        configuration = Path(directory) / "pgbouncer.ini"
        configuration.write_text(_configuration(given, port, sessions), encoding="utf-8")
        user = []
        if os.geteuid() == 0:
            user = ["-u", NOBODY]
            shutil.chown(directory, NOBODY)
            shutil.chown(configuration, NOBODY)
        with subprocess.Popen([program, "-q", *user, str(configuration)], stdin=subprocess.DEVNULL) as pooler:
            pooled = f"host=127.0.0.1 port={port} dbname=pooled user={given['user']}"
            try:
                eventually(lambda: _answers(pooled), timeout=30)
                yield pooled
            finally:
                pooler.terminate()


def _reachable(dsn: str, home: Path) -> dict[str, str]:
    """Over TCP: nobody else may enter the directory of an embedded server's socket."""
    given = conninfo_to_dict(dsn)
    if str(given.get("host", "")).startswith("/"):
        address = EmbeddedServer("tests", home).status().tcp_url
        assert address is not None
        given = {**conninfo_to_dict(address), "dbname": given["dbname"]}
    return {name: str(value) for name, value in given.items() if value}


def _configuration(given: dict[str, str], port: int, sessions: int) -> str:
    target = " ".join(
        f"{name}={given[name]}" for name in ("host", "port", "dbname", "user", "password") if name in given
    )
    return dedent(
        f"""
        [databases]
        pooled = {target}
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {port}
        unix_socket_dir =
        auth_type = any
        pool_mode = transaction
        default_pool_size = {sessions}
        """
    )


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True
