"""The real program in a real terminal on a real database: what is seen, what keys do, and what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.console.terminal import ROOT, Terminal
from tests.supervisor.support import Host, pool
from tests.support.zoo import add_dead_letter

pytestmark = pytest.mark.system


@contextlib.contextmanager
def terminal_of(**environment: str) -> Iterator[Terminal]:
    terminal = Terminal(**environment)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with terminal_of() as terminal:
        yield terminal


def dead_letters(dsn: str, count: int) -> list[int]:
    async def add() -> list[int]:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            return [await add_dead_letter(conn, error=f"ValueError: letter {n} [red]") for n in range(1, count + 1)]

    return asyncio.run(add())


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program without a terminal."""
    command = [sys.executable, "-m", "tests.console.program", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )


def resolution(dsn: str, letter: int) -> str | None:
    with psycopg.connect(dsn) as conn:
        row = conn.execute("SELECT resolution FROM dead_letter_jobs WHERE id = %s", (letter,)).fetchone()
    return row[0] if row else None


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), pytest.param(signal.SIGQUIT, 131, marks=pytest.mark.slow)],
)
def test_a_signal_ends_the_console_and_gives_the_terminal_back(
    terminal: Terminal, dsn: str, number: signal.Signals, code: int
) -> None:
    before = terminal.stty()
    terminal.run_console("--dsn", dsn)
    terminal.wait_for("[1 Dash]", "live")
    assert terminal.modes()[1049]

    terminal.program().send_signal(number)

    assert terminal.left() == code
    assert terminal.is_sane()
    assert terminal.stty() == before


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGABRT, marks=pytest.mark.slow),
        pytest.param(signal.SIGSEGV, marks=pytest.mark.slow),
    ],
)
def test_a_console_that_dies_without_a_word_leaves_no_broken_terminal(
    terminal: Terminal, dsn: str, number: signal.Signals
) -> None:
    before = terminal.stty()
    terminal.run_console("--dsn", dsn)
    terminal.wait_for("[1 Dash]", "live")

    terminal.program().send_signal(number)

    assert terminal.left() == 128 + number
    terminal.wait(terminal.is_sane)
    assert terminal.stty() == before


def test_a_crash_gives_the_terminal_back_and_says_one_line_that_gives_nothing_away(dsn: str) -> None:
    with terminal_of(CONSOLE_CRASHES="loop") as terminal:
        before = terminal.stty()
        terminal.run_console("--dsn", dsn)

        assert terminal.left() == 1
        assert terminal.is_sane()
        assert terminal.stty() == before
        shown = terminal.raw.split(b"\x1b[?1049l")[-1].decode(errors="replace")
        assert "pgq-tui crashed: RuntimeError in" in shown
        assert "customer" not in shown
        assert "s3cret" not in shown


def test_an_exception_in_a_thread_leaves_the_console_as_it_is(dsn: str) -> None:
    with terminal_of(CONSOLE_CRASHES="thread") as terminal:
        terminal.run_console("--dsn", dsn)
        terminal.wait_for("[1 Dash]", "live")
        terminal.type("2")
        terminal.wait_for("[2 Queues", "no queue is selected")
        assert "customer" not in terminal.text

        terminal.type("q")
        assert terminal.left() == 0
        assert terminal.is_sane()


def test_quitting_gives_the_terminal_back(terminal: Terminal, dsn: str) -> None:
    before = terminal.stty()
    terminal.run_console("--dsn", dsn)
    terminal.wait_for("live")

    terminal.type("q")

    assert terminal.left() == 0
    assert terminal.is_sane()
    assert terminal.stty() == before


def test_one_command_gives_a_broken_terminal_back(terminal: Terminal) -> None:
    terminal.run("printf", r"\e[?1049h\e[?1003h\e[?1006h\e[?25l", suffix="; stty -echo -icanon\n")
    terminal.wait(lambda: not terminal.is_sane())

    terminal.run_console("reset-terminal")

    terminal.wait(terminal.is_sane)
    assert " echo " in terminal.stty()
    assert " icanon" in terminal.stty()


def test_replay_and_discard_act_on_the_row_that_was_shown(terminal: Terminal, dsn: str) -> None:
    first, second, third = dead_letters(dsn, 3)
    terminal.run_console("--dsn", dsn)
    terminal.wait_for("live")
    terminal.type("5")
    terminal.wait_for("Dead letters 3", f"dead letter {third}", "letter 3 [red]")
    terminal.type("j")
    terminal.wait_for(f"dead letter {second}")
    terminal.type("R")
    terminal.wait_for("Replay", "letter 2 [red]")
    # A letter arrives on top of the list while the question stands.
    dead_letters(dsn, 1)
    terminal.wait(lambda: terminal.type("y") or resolution(dsn, second) == "replayed")
    terminal.wait_for("replayed 1 as job")

    terminal.type("G")
    terminal.wait_for(f"dead letter {first}")
    terminal.type("D")
    terminal.wait_for("Discard", "letter 1 [red]")
    terminal.wait(lambda: terminal.type("y") or resolution(dsn, first) == "discarded")

    assert resolution(dsn, third) is None
    terminal.wait_for("discarded 1")
    terminal.type("z")
    terminal.wait(lambda: resolution(dsn, first) is None)


def test_a_database_without_tables_shows_the_command_that_makes_them(terminal: Terminal, empty_dsn: str) -> None:
    terminal.run_console("--dsn", empty_dsn)

    terminal.wait_for("this database is not ready for pgq", "pgq-core migrate")
    terminal.type("q")
    assert terminal.left() == 0


def test_an_unreachable_database_is_waited_for_and_left_at_once(terminal: Terminal) -> None:
    terminal.run_console("--dsn", "postgresql://nobody@127.0.0.1:1/nothing")

    terminal.wait_for("the database cannot be reached", "q quits")
    terminal.type("q")
    assert terminal.left() == 0


def test_the_window_opens_at_once_though_the_database_never_answers(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        terminal.run_console("--dsn", f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing")

        terminal.wait_for("loading", "Throughput", "quit")
        terminal.type("q")

        assert terminal.left() == 0


def test_without_a_terminal_it_refuses_with_a_sentence() -> None:
    answer = program()

    assert answer.returncode == 2
    assert "needs a terminal" in answer.stderr
    assert "\x1b" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("flags", [("--icons", "emoji"), ("--demo", "--dsn", "postgresql://x/y"), ("--refresh", "0")])
def test_wrong_flags_are_refused(terminal: Terminal, flags: tuple[str, ...]) -> None:
    terminal.run_console(*flags)

    assert terminal.left() == 2


def test_the_version_is_printed() -> None:
    answer = program("--version")

    assert answer.stdout.startswith("pgq-tui ")


def test_importing_the_package_imports_no_screen() -> None:
    code = "import sys, pgq_tui, pgq_tui.cli; sys.exit(any(name.split('.')[0] == 'textual' for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


async def test_pictures_are_the_same_every_time() -> None:
    from pgq_tui.pictures.camera import SHOTS, draw

    one, other = await draw(SHOTS[0], (80, 24)), await draw(SHOTS[0], (80, 24))

    assert one == other
    assert "emails" in one


def test_plus_brings_one_more_worker_and_minus_drains_one(terminal: Terminal, dsn: str, tmp_path: Path) -> None:
    host = Host(dsn, tmp_path)
    try:
        host.supervise(pool("web", wanted=1))
        host.until_running(1)
        terminal.run_console("--dsn", dsn)
        terminal.wait_for("live")
        terminal.type("6")
        terminal.wait_for("pool web", "1/1")

        terminal.type("+")
        terminal.wait_for("wants 2 workers", "2/2")
        host.until_running(2)
        terminal.type("-")
        terminal.wait_for("wants 1 worker", "1/1")
        host.until_running(1)

        terminal.type("q")
        assert terminal.left() == 0
        assert len(host.workers()) == 1, "the workers of another supervisor live on"
    finally:
        host.close()
