"""Reading what a child prints: it may print without end, without line breaks, or bytes that are no text."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

MAX_LINE: Final = 16 * 1024
READ_SIZE: Final = 65536
LINES_PER_SECOND: Final = 5000
_LONGEST_NOTE: Final = 64
"""Bytes of the note on a line that was cut."""


class LineSplitter:
    """Cuts a stream into lines of bounded length and bounded number; what is left out is counted and said."""

    def __init__(self, emit: Callable[[list[str]], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """`emit` is given the lines that one piece of the stream has ended, never none."""
        self._emit = emit
        self._clock = clock
        self._partial = b""
        self._cut = 0
        self._second = 0
        self._budget = LINES_PER_SECOND
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._grow(first)
        if rest:
            lines = self._allowed([self._whole(), *rest[:-1]])
            self._partial, self._cut = b"", 0
            self._grow(rest[-1])
            if lines:
                self._emit(lines)

    def close(self) -> None:
        if self._partial or self._cut:
            self.feed(b"\n")
        self._say_dropped()

    def _grow(self, piece: bytes) -> None:
        room = MAX_LINE - len(self._partial)
        self._partial += piece[:room]
        self._cut += max(len(piece) - room, 0)

    def _whole(self) -> bytes:
        return self._partial + f" … [{self._cut} bytes cut]".encode() if self._cut else self._partial

    def _allowed(self, lines: list[bytes]) -> list[str]:
        second = int(self._clock())
        if second != self._second:
            self._second, self._budget = second, LINES_PER_SECOND
            self._say_dropped()
        allowed = lines[: self._budget]
        self._budget -= len(allowed)
        self._dropped += len(lines) - len(allowed)
        return [_text(line) for line in allowed]

    def _say_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._emit([f"[{dropped} lines were dropped: more than {LINES_PER_SECOND} in a second]"])


def _text(line: bytes) -> str:
    if len(line) > MAX_LINE + _LONGEST_NOTE:
        line = line[:MAX_LINE] + f" … [{len(line) - MAX_LINE} bytes cut]".encode()
    return line.decode("utf-8", "replace").rstrip("\r")


def read_available(descriptor: int, limit: int = READ_SIZE) -> bytes | None:
    """What a non-blocking descriptor holds right now: b"" at its end, None when there is nothing yet."""
    try:
        return os.read(descriptor, limit)
    except BlockingIOError:
        return None
    except OSError:
        return b""
