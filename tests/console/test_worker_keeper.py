"""A supervisor that the console brought up and that dies gets a successor; one that was asked to leave does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from pgq_core.errors import DatabaseUnavailable
from pgq_tui import worker_keeper
from pgq_tui.screens.leaving import LocalWorkers
from pgq_tui.supervisor import Fate
from pgq_tui.worker_keeper import successors
from tests.console.terminal import Terminal
from tests.supervisor.support import APP
from tests.support.waiting import eventually

PATIENCE = 60.0


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """With a pools file of its own, and nobody left behind."""
    pools = tmp_path / "config" / "pgq-tui" / "pools.toml"
    pools.parent.mkdir(parents=True)
    pools.write_text(f'[pools.web]\napp = "{APP}"\nqueues = ["default"]\nwanted = 1\n')
    there = Terminal(
        columns=120, lines=36, XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_STATE_HOME=str(tmp_path / "state")
    )
    yield there
    there.close()


def supervisor(dsn: str) -> dict[str, Any] | None:
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        return conn.execute("SELECT supervisor_id, pid FROM supervisors").fetchone()


@pytest.mark.slow
def test_a_killed_supervisor_is_said_to_be_gone_and_gets_a_successor(terminal: Terminal, dsn: str) -> None:
    try:
        terminal.run_console("--dsn", dsn)
        terminal.wait_for("live")
        terminal.type("6")
        terminal.wait_for("supervised on", "1/1", timeout=PATIENCE)
        first = supervisor(dsn)
        assert first is not None

        os.kill(first["pid"], signal.SIGKILL)

        terminal.wait_for("no supervisor runs", timeout=PATIENCE)
        eventually(lambda: (supervisor(dsn) or first)["pid"] != first["pid"], PATIENCE)
        terminal.wait_for("supervised on", timeout=PATIENCE)
    finally:
        last = supervisor(dsn)
        terminal.close()
        if last is not None:
            _leave(last["pid"], dsn)


def _leave(pid: int, dsn: str) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: supervisor(dsn) is None, PATIENCE)


class Host:
    """Supervisors whose fates are told beforehand, and how long was waited before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *tries: list[Fate] | Exception | None) -> None:
        self.tries = list(tries)
        self.pauses: list[float] = []
        self.said: list[str] = []
        self.number = 0
        sleep = asyncio.sleep

        async def skip(seconds: float) -> None:
            if seconds != worker_keeper.LOOK_SECONDS:
                self.pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr(worker_keeper.asyncio, "sleep", skip)

    async def bring_up(self) -> LocalWorkers | None:
        told = self.tries.pop(0)
        if isinstance(told, Exception):
            raise told
        return None if told is None else self.living(told)

    def living(self, fates: list[Fate]) -> LocalWorkers:
        self.number += 1

        async def fate() -> Fate:
            return fates.pop(0)

        async def stop() -> bool:
            return True

        return LocalWorkers("h", f"s{self.number}", stop, fate)

    async def all_of_them(self) -> list[str]:
        first = await self.bring_up()
        assert first is not None
        following = successors(
            first, self.bring_up, on_death=self.said.append, on_failure=lambda error: self.said.append(str(error))
        )
        return [one.supervisor_id async for one in following]


async def test_who_left_in_order_gets_no_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(monkeypatch, [Fate.LIVES, Fate.LIVES, Fate.LEFT])

    assert await host.all_of_them() == []
    assert (host.said, host.pauses) == ([], [])


async def test_each_try_waits_longer_than_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    away = DatabaseUnavailable("away")
    died = [Fate.LIVES, Fate.DIED]
    host = Host(monkeypatch, died, away, away, died[:], died[:], [Fate.LEFT])

    assert await host.all_of_them() == ["s2", "s3", "s4"]
    assert host.said == ["s1", str(away), str(away), "s2", "s3"]
    assert host.pauses == [2, 4, 8, 16, 32]


async def test_a_host_that_somebody_else_keeps_by_then_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(monkeypatch, [Fate.DIED], None)

    assert await host.all_of_them() == []
    assert host.said == ["s1"]
