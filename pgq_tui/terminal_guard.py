"""A second process that gives the terminal back when the console dies without a chance to do so itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator
from typing import NoReturn

from pgq_tui.terminal import SANE

_GOODBYE = b"k"
_IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTOU,
    signal.SIGTTIN,
)


@contextlib.contextmanager
def guarded_terminal() -> Iterator[None]:
    """While the block runs, a process of a few pages waits for the end of this one: a pipe tells it.

    To be entered before anything is opened or started: a fork takes a copy of every descriptor, locks included.
    """
    reading, writing = os.pipe()
    modes = termios.tcgetattr(sys.stdin)
    guard = os.fork()
    if guard == 0:
        os.close(writing)
        _wait_for_the_end(reading, modes)
    os.close(reading)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.write(writing, _GOODBYE)
        os.close(writing)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(guard, 0)


def _wait_for_the_end(reading: int, modes: list[object]) -> NoReturn:
    """Never comes back into the program that was forked."""
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        if not os.read(reading, 1):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)  # type: ignore[arg-type]  # as tcgetattr gave them
            os.write(sys.stdout.fileno(), SANE.encode())
    finally:
        os._exit(0)
