"""How the console ends: at once, unless workers that it brought up still run; and what is left of a crash."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from pgq_core.errors import DatabaseUnavailable, InvalidSettings
from pgq_tui.app import PgqApp
from pgq_tui.crash import write_crash_log
from pgq_tui.screens.leaving import LocalWorkers
from pgq_tui.screens.session import Session
from pgq_tui.supervisor import Fate
from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.dialog import DEAD_SECONDS
from tests.console.stage import FakeBackend, console, settle, shows

SIZE = (120, 36)


class Host:
    """The supervisor of this host, as far as the console knows it."""

    def __init__(self) -> None:
        self.stopped = 0
        self.lets_go = asyncio.Event()
        self.lets_go.set()

    async def bring_up(self) -> LocalWorkers:
        return LocalWorkers("shop-1", "shop-1-4120", self.stop, self.fate)

    async def fate(self) -> Fate:
        return Fate.LIVES

    async def stop(self) -> bool:
        self.stopped += 1
        await self.lets_go.wait()
        return True


def console_with(host: Host) -> PgqApp:
    return PgqApp(Session(FakeBackend(), interval=1.0), bring_up=host.bring_up, theme="pgq-dark")


async def asked(pilot: Pilot[Any]) -> None:
    await settle(pilot, until=lambda: isinstance(pilot.app.screen, ChoiceDialog))
    await pilot.pause(DEAD_SECONDS + 0.02)


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_without_workers_of_its_own_the_console_leaves_at_once(key: str) -> None:
    app = console(FakeBackend())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press(key)
        await settle(pilot, until=lambda: not app.is_running)

    assert app.return_code == 0


@pytest.mark.parametrize(("answer", "stops"), [("d", 0), ("enter", 0), ("s", 1)])
async def test_with_workers_of_its_own_the_operator_chooses(answer: str, stops: int) -> None:
    host = Host()
    app = console_with(host)

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        await asked(pilot)
        await shows(pilot, "5 workers of this host", "leave running", "drain and stop")
        await pilot.press(answer)
        await settle(pilot, until=lambda: not app.is_running)

    assert host.stopped == stops
    assert app.return_code == 0


async def test_escape_stays_and_asks_again_next_time() -> None:
    app = console_with(Host())

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        for _ in range(2):
            await pilot.press("q")
            await asked(pilot)
            await pilot.press("escape")
            await settle(pilot, until=lambda: not isinstance(app.screen, ChoiceDialog))

        assert app.is_running


async def test_a_second_quit_leaves_at_once_while_workers_drain() -> None:
    host = Host()
    host.lets_go.clear()
    app = console_with(host)

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        await asked(pilot)
        await pilot.press("s")
        await shows(pilot, "workers finish what they run")
        await pilot.press("ctrl+q")
        await settle(pilot, until=lambda: not app.is_running)

    assert host.stopped == 1


async def test_workers_of_other_supervisors_are_nobodys_question() -> None:
    host = Host()
    app = console_with(host)
    shop = app.session.backend.shop
    shop.workers = [replace(worker, supervisor_id="another") for worker in shop.workers]
    shop.supervisors = [replace(one, supervisor_id="another") for one in shop.supervisors]

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        await settle(pilot, until=lambda: not app.is_running)


async def test_a_supervisor_without_workers_is_asked_about_too() -> None:
    app = console_with(Host())
    app.session.backend.shop.workers = []

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        await asked(pilot)
        await shows(pilot, "on this host runs no worker")


async def test_a_supervisor_that_is_just_being_started_is_asked_about_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgq_tui.app.LONGEST_WAIT_TO_LEAVE", 60.0)
    host, is_up = Host(), asyncio.Event()

    async def bring_up() -> LocalWorkers:
        await is_up.wait()
        return await host.bring_up()

    app = PgqApp(Session(FakeBackend(), interval=1.0), bring_up=bring_up, theme="pgq-dark")

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        is_up.set()
        await asked(pilot)


async def test_a_supervisor_that_does_not_come_up_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def bring_up() -> LocalWorkers | None:
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr("pgq_tui.app.LONGEST_WAIT_TO_LEAVE", 0.05)
    app = PgqApp(Session(FakeBackend(), interval=1.0), bring_up=bring_up, theme="pgq-dark")

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live")
        await pilot.press("q")
        await settle(pilot, until=lambda: not app.is_running)


async def test_a_database_that_is_away_is_waited_for_before_workers_are_brought_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pgq_tui.app.BRING_UP_AGAIN", 0.05)
    host, tries = Host(), 0

    async def bring_up() -> LocalWorkers | None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise DatabaseUnavailable("connection refused")
        return await host.bring_up()

    app = PgqApp(Session(FakeBackend(), interval=1.0), bring_up=bring_up, theme="pgq-dark")

    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, until=lambda: tries == 3)
        await pilot.press("q")
        await asked(pilot)


async def test_a_pools_file_with_a_fault_is_said_and_the_console_goes_on() -> None:
    async def bring_up() -> LocalWorkers | None:
        raise InvalidSettings("/etc/pools.toml: pools.mail: [app] is missing")

    app = PgqApp(Session(FakeBackend(), interval=1.0), bring_up=bring_up, theme="pgq-dark")

    async with app.run_test(size=SIZE) as pilot:
        await shows(pilot, "pools.mail: [app] is missing", "✓ live")


async def test_a_command_that_fails_in_our_code_is_said_and_the_console_goes_on(monkeypatch: Any) -> None:
    backend = FakeBackend()
    app = console(backend)

    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")

        async def broken(*_: object) -> None:
            raise ZeroDivisionError("a fault of ours")

        monkeypatch.setattr(backend, "scale_by", broken, raising=False)
        await pilot.press("plus")

        await shows(pilot, "failed: ZeroDivisionError, see the log")
        assert app.is_running


def test_a_crash_leaves_a_private_file_and_one_line_without_its_message(tmp_path: Path) -> None:
    try:
        raise RuntimeError("payload of a customer, postgresql://app:s3cret@db/jobs")
    except RuntimeError as error:
        line, path = write_crash_log(error, tmp_path / "state")

    assert path is not None
    assert "RuntimeError in console/test_leaving.py:" in line
    assert str(path) in line
    assert "customer" not in line
    assert "s3cret" not in path.read_text()
    assert "payload of a customer" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_crash_without_a_place_to_write_still_says_its_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")

    line, path = write_crash_log(ValueError("x"), blocked / "state")

    assert path is None
    assert line.startswith("pgq-tui crashed: ValueError")


def test_only_the_last_crashes_are_kept(tmp_path: Path) -> None:
    for _ in range(30):
        write_crash_log(ValueError("x"), tmp_path)

    assert len(list(tmp_path.glob("crash-*.log"))) == 20
