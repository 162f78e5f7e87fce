"""Every test gets a real PostgreSQL, a database of its own, and no setting of the person who runs it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.databases import database_name, new_database, session_home, test_server
from tests.support.lending import Lender

SCHEMA = "pgq_core"
KEPT = {"PGQ_TEST_DSN"}


def pytest_configure() -> None:
    """Before any test module is imported: forget what the caller's environment says about databases and queues."""
    for name in list(os.environ):
        if name not in KEPT and (name in {"DATABASE_URL", "QUEUE"} or name.startswith(("PGQ_", "PG"))):
            del os.environ[name]
    # A shell starts what runs in the background with SIGINT ignored, and programs under test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With one process per core the suite kept the cores busy for 55 % of its time."""
    return 2 * (psutil.cpu_count(logical=True) or 1)


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """Where programs under test keep data and look for settings, in place of the user's own directories."""
    with session_home() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGQ_HOME", str(directory / "home"))
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            patch.setenv(f"XDG_{kind}_HOME", str(directory / kind.lower()))
        yield directory


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
