"""Homes for embedded servers: one made ready once, a copy of it for each test, everything stopped at the end."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgq_core.embedded import EmbeddedServer
from tests.support.databases import FAST, ready_server

LEASE_UNTIL_INPUT_ENDS = """
import sys, pathlib
from pgq_core.embedded import EmbeddedServer
with EmbeddedServer(home=pathlib.Path(sys.argv[1])).lease() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def empty_home(home: Path) -> Iterator[Path]:
    """A home in which no server ever ran. Short, unlike pytest's own directories: sockets have to fit into it."""
    directory = Path(tempfile.mkdtemp(prefix="e-", dir=home))
    yield directory
    _stop_everything_in(directory)


@pytest.fixture(scope="session")
def prepared_home(home: Path) -> Path:
    """A home with a stopped server whose files are all made."""
    directory = home / "prepared"
    ready_server("main", directory)
    return directory


@pytest.fixture
def used_home(home: Path, prepared_home: Path) -> Iterator[Path]:
    """A home in which a server ran before and was stopped well."""
    directory = Path(tempfile.mkdtemp(prefix="u-", dir=home))
    shutil.copytree(prepared_home, directory, dirs_exist_ok=True, symlinks=True)
    yield directory
    _stop_everything_in(directory)


@pytest.fixture
def server(used_home: Path) -> EmbeddedServer:
    """The server of `used_home`, stopped."""
    return EmbeddedServer(home=used_home, settings=FAST)


@pytest.fixture
def user_process(used_home: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a process that holds a lease on the server of `used_home` until its input ends."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", LEASE_UNTIL_INPUT_ENDS, str(used_home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("postgresql://")
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def _stop_everything_in(directory: Path) -> None:
    for lock in directory.glob("**/lock"):
        EmbeddedServer(lock.parent.name, lock.parent.parent).stop()
