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
"""Descriptors from here on: a job that writes to 1 and 2 on its own account does not cut our lines in two."""

_close, _closerange = os.close, os.closerange


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

    From here on `os.close` leads descriptors 0 to 2 nowhere and frees none. Answers the descriptor for log lines.
    """
    out, err = _moved(_STDOUT), _moved(_STDERR)
    sys.stdout, sys.stderr = _text_stream(out), _text_stream(err)
    _keep_streams_taken()
    return err


def abandon_streams() -> None:
    """The keeper is gone: child processes of jobs must not be killed by SIGPIPE for printing."""
    discard(_STDOUT)
    discard(_STDERR)


def discard(descriptor: int) -> None:
    """From now on the descriptor leads nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)  # in one step: nobody's new descriptor can come in between
        os.close(nowhere)


def _keep_streams_taken() -> None:
    """Two jobs that both close 0 to 2: the second would close what a third, or we, opened there in between.

    Seen as statements that failed, and as waits without end: a closed descriptor leaves epoll without a word.
    """
    os.close, os.closerange = _close_unless_stream, _close_range_unless_streams
    os.register_at_fork(after_in_child=_let_streams_go)


def _let_streams_go() -> None:
    """A child process that is made a daemon needs them free."""
    os.close, os.closerange = _close, _closerange


def _close_unless_stream(fd: int) -> None:
    if 0 <= fd <= _STDERR:
        discard(fd)
    else:
        _close(fd)


def _close_range_unless_streams(fd_low: int, fd_high: int, /) -> None:
    for descriptor in range(max(fd_low, 0), min(fd_high, _STDERR + 1)):
        discard(descriptor)
    _closerange(max(fd_low, _STDERR + 1), fd_high)


def _moved(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_REACH)


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(PipeOutput(descriptor))
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", line_buffering=True)
