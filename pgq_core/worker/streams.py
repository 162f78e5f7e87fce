"""The runner's standard streams: pipes to its keeper, which may be gone at any moment without failing a job."""

from __future__ import annotations

import io
import os
import sys
from typing import Final

from typing_extensions import Buffer

_STDOUT: Final = 1
_STDERR: Final = 2


class PipeOutput(io.FileIO):
    """A descriptor to print on. When nobody reads any more, what is printed goes nowhere."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            _discard(self.fileno())
            return memoryview(data).nbytes


def guard_streams() -> None:
    """Replaces `sys.stdout` and `sys.stderr`: UTF-8 whatever the locale, by lines, never an error for the printer."""
    sys.stdout = _text_stream(_STDOUT)
    sys.stderr = _text_stream(_STDERR)


def abandon_streams() -> None:
    """The keeper is gone: child processes of jobs must not be killed by SIGPIPE for printing."""
    _discard(_STDOUT)
    _discard(_STDERR)


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(PipeOutput(descriptor))
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _discard(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, descriptor)
    finally:
        os.close(nowhere)
