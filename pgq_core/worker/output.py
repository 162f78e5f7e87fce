"""Reading what a child prints: it may print without end, without line breaks, or bytes that are no text."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

MAX_LINE: Final = 16 * 1024
READ_SIZE: Final = 65536
LINES_PER_SECOND: Final = 5000


class LineSplitter:
    """Cuts a stream into lines of bounded length and bounded number; what is left out is counted and said."""

    def __init__(self, emit: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
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
        for piece in rest:
            self._end_line()
            self._grow(piece)

    def close(self) -> None:
        if self._partial or self._cut:
            self._end_line()
        self._say_dropped()

    def _grow(self, piece: bytes) -> None:
        room = MAX_LINE - len(self._partial)
        self._partial += piece[:room]
        self._cut += max(len(piece) - room, 0)

    def _end_line(self) -> None:
        line, cut = self._partial, self._cut
        self._partial, self._cut = b"", 0
        if not self._has_budget():
            self._dropped += 1
            return
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._emit(f"{text} … [{cut} bytes cut]" if cut else text)

    def _has_budget(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._budget = second, LINES_PER_SECOND
            self._say_dropped()
        self._budget -= 1
        return self._budget >= 0

    def _say_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._emit(f"[{dropped} lines were dropped: more than {LINES_PER_SECOND} in a second]")


def read_available(descriptor: int, limit: int = READ_SIZE) -> bytes | None:
    """What a non-blocking descriptor holds right now: b"" at its end, None when there is nothing yet."""
    try:
        return os.read(descriptor, limit)
    except BlockingIOError:
        return None
    except OSError:
        return b""
