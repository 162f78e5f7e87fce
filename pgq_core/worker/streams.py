"""The runner's standard streams: pipes to its keeper, which may be gone at any moment without failing a job."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from typing import Final

from typing_extensions import Buffer

_STDOUT: Final = 1
_STDERR: Final = 2
_OUT_OF_REACH: Final = 200
"""Descriptors from here on: a job that closes 0 to 2 must not make our next socket the place it prints to."""


class PipeOutput(io.FileIO):
    """A descriptor to print on. When nobody reads any more, or it was closed, what is printed goes nowhere."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            discard(self.fileno())
            return memoryview(data).nbytes


def guard_streams() -> int:
    """Replaces `sys.stdout` and `sys.stderr`: UTF-8 whatever the locale, by lines, never an error for the printer.

    Answers the descriptor for log lines.
    """
    out, err = _moved(_STDOUT), _moved(_STDERR)
    sys.stdout, sys.stderr = _text_stream(out), _text_stream(err)
    return err


def abandon_streams() -> None:
    """The keeper is gone: child processes of jobs must not be killed by SIGPIPE for printing."""
    discard(_STDOUT)
    discard(_STDERR)


def discard(descriptor: int) -> None:
    """From now on the descriptor leads nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _moved(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_REACH)


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(PipeOutput(descriptor))
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", line_buffering=True)
