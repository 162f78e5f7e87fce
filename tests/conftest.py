"""Every test gets a real PostgreSQL, a database of its own, and no setting of the person who runs it."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import structlog

from tests.support.databases import (
    database_name,
    new_database,
    remove_shared_files,
    session_home,
    set_up_shared_files,
    test_server,
)
from tests.support.lending import Lender

SCHEMA = "pgq_core"
KEPT = {"PGQ_TEST_DSN"}


def pytest_configure() -> None:
    """Before any test module is imported: forget what the caller's environment says about databases and queues."""
    # Hundreds of programs are started here: each would compile this project anew, and each test process its tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for name in list(os.environ):
        if name not in KEPT and (name in {"DATABASE_URL", "QUEUE"} or name.startswith(("PGQ_", "PG"))):
            del os.environ[name]
    # A shell starts what runs in the background with SIGINT ignored, and programs under test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    set_up_shared_files()


def pytest_unconfigure() -> None:
    remove_shared_files()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With one process per core the suite kept the cores busy for 55 % of its time; three gained nothing over two."""
    return 2 * (psutil.cpu_count(logical=True) or 1)


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """Where programs under test keep data and look for settings, in place of the user's own directories."""
    with session_home() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGQ_HOME", str(directory / "home"))
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            patch.setenv(f"XDG_{kind}_HOME", str(directory / kind.lower()))
        yield directory


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command that was called inside a test process has set up logs for all that comes after it."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        for handler in logging.root.handlers[:]:
            if type(handler).__module__ == "pgq_core.logs":
                logging.root.removeHandler(handler)


@pytest.fixture(scope="session")
def server_dsn(home: Path) -> Iterator[str]:
    """A server of this session's own, or `PGQ_TEST_DSN`. Tests use `dsn` or `empty_dsn`, which are databases on it."""
    with test_server(home) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def template_database(server_dsn: str) -> Iterator[str]:
    """A database migrated once; copying it is many times cheaper than migrating another."""
    from pgq_core.migrate import migrate

    with new_database(server_dsn) as dsn:
        migrate(dsn, schema=SCHEMA)
        yield database_name(dsn)


@pytest.fixture(scope="session")
def lender(server_dsn: str, template_database: str) -> Iterator[Lender]:
    lender = Lender(server_dsn, template_database, SCHEMA)
    yield lender
    lender.close()


@pytest.fixture
def dsn(lender: Lender) -> Iterator[str]:
    """A migrated database for one test; its search_path lets plain SQL name the tables bare."""
    with lender.lend() as address:
        yield address


@pytest.fixture
def empty_dsn(server_dsn: str) -> Iterator[str]:
    """A database without our schema, for one test."""
    with new_database(server_dsn) as address:
        yield address


@pytest.fixture
def stranger(dsn: str) -> Iterator[psycopg.Connection]:
    """Somebody at a connection of his own, who leaves his transaction open until the test has ended."""
    with psycopg.connect(dsn) as conn:
        yield conn
        conn.rollback()
