"""PostgreSQL stops under the open console and running workers, and comes back: nobody has to do anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate
from tests.console.terminal import Terminal
from tests.supervisor.support import Host, pool
from tests.support.databases import new_database, ready_server

pytestmark = pytest.mark.system


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedServer]:
    """A server of this test's own, since it is stopped on the way."""
    server = ready_server("outage", home)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def dsn(server: EmbeddedServer) -> Iterator[str]:
    with new_database(server.start(), search_path="pgq_core") as address:
        migrate(address, schema="pgq_core")
        yield address
        server.start()  # to drop the database


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal(columns=120, lines=36)
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    "seconds", [pytest.param(3, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.torture)]
)
def test_console_and_workers_survive_an_outage_by_themselves(
    server: EmbeddedServer, dsn: str, terminal: Terminal, tmp_path: Path, seconds: int
) -> None:
    host = Host(dsn, tmp_path)
    try:
        host.supervise(pool("web", wanted=2), heartbeat=0.5, stale_limit=30.0)
        host.until_running(2)
        host.enqueue("sleep", {"seconds": 0.05}, 200)
        terminal.run_console("--dsn", dsn)
        terminal.wait_for("live", "default")

        server.stop()
        terminal.wait_for("lost")
        assert "default" in terminal.text, "the last picture stays"
        terminal.wait(lambda: "ago" in terminal.text or "data from" in terminal.text)
        time.sleep(seconds)  # the length of the outage is what this test is about
        server.start()

        terminal.wait(lambda: "lost" not in terminal.text and "live" in terminal.text)
        host.until_outcomes(succeeded=200)
        assert host.rows("SELECT count(*) AS n FROM jobs") == [{"n": 0}]
        terminal.type("q")
        assert terminal.left() == 0
    finally:
        host.close()
