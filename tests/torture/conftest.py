"""A server that may be treated badly, and an arena for each run."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from pgq_core.migrate import migrate
from tests.conftest import SCHEMA
from tests.support.databases import new_database
from tests.torture.arena import Arena
from tests.torture.invariants import TABLES
from tests.torture.report import published, settle
from tests.torture.server import TortureServer

EARLIER = len(published())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The lines are what a run is for. From the file, since other processes may have written them."""
    if lines := published()[EARLIER:]:
        terminalreporter.section("torture")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A line is written when its run is over: only then it is known whether it passed."""
    report = yield
    if call.when == "call":
        settle(passed=report.passed)
    return report


@pytest.fixture(scope="session")
def torture_server(home: Path) -> Iterator[TortureServer]:
    """One for all runs: durable as in production, so not the session's fast one."""
    server = TortureServer(home)
    yield server
    server.close()


@pytest.fixture
def server(torture_server: TortureServer) -> Iterator[TortureServer]:
    torture_server.start()
    yield torture_server
    torture_server.start()  # the next run, and the end of this one's database, need it


@pytest.fixture
def arena(server: TortureServer, tmp_path: Path) -> Iterator[Arena]:
    with new_database(server.url, search_path=SCHEMA) as dsn:
        migrate(dsn, schema=SCHEMA)
        arena = open_arena(dsn, tmp_path)
        yield arena
        arena.close()
        server.start()


def open_arena(dsn: str, directory: Path) -> Arena:
    arena = Arena(dsn, directory)
    arena.database.run(TABLES)
    return arena
