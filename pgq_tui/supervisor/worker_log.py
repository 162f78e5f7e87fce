"""Everything one worker prints, in a bounded file, and never a reason to stall the worker."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import TextIO

FILE_LIMIT = 5 * 1024 * 1024
REOPEN_AFTER = 10.0


class WorkerLog:
    """`path` and one predecessor (`.1`) hold at most `2 * FILE_LIMIT` bytes.

    A file that cannot be written (full disk, lost mount) costs the lines meant for it and nothing else: they are
    counted in `dropped`, and the file is tried again later. `now` is any clock that only goes forward.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped = 0
        self._pending: list[str] = []
        self._file: TextIO | None = None
        self._size = 0
        self._closed_until = float("-inf")

    def append(self, line: str) -> None:
        """Cheap: the file is touched by `flush`."""
        self._pending.append(line)

    def flush(self, now: float) -> None:
        if not self._pending:
            return
        lines, self._pending = self._pending, []
        if now < self._closed_until:
            self.dropped += len(lines)
            return
        try:
            self._write("\n".join(lines) + "\n")
        except OSError:
            self.dropped += len(lines)
            self._closed_until = now + REOPEN_AFTER
            self._forget_file()

    def close(self, now: float) -> None:
        self.flush(now)
        self._forget_file()

    def _write(self, text: str) -> None:
        size = len(text.encode("utf-8", "backslashreplace"))
        file = self._file or self._open()
        if self._size and self._size + size > FILE_LIMIT:
            file = self._rotate()
        file.write(text)
        file.flush()
        self._size += size

    def _open(self) -> TextIO:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8", errors="backslashreplace")
        self._size = self._file.tell()
        return self._file

    def _rotate(self) -> TextIO:
        self._forget_file()
        self.path.replace(self.path.with_name(self.path.name + ".1"))
        return self._open()

    def _forget_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        # What a full disk did not take is still in the buffer; it has been counted.
        with contextlib.suppress(OSError):
            file.close()


def sweep_logs(directory: Path, *, keep: int, in_use: Collection[Path] = ()) -> None:
    """Removes the oldest log files beyond `keep`, so that a crash loop of months does not fill a disk."""
    logs = sorted(set(directory.glob("*.log")).difference(in_use), key=_changed_at, reverse=True)
    for old in logs[keep:]:
        old.unlink(missing_ok=True)
        old.with_name(old.name + ".1").unlink(missing_ok=True)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
