"""For development: noticing that a source file has changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

LOOK_EVERY: Final = 0.5
_SKIPPED: Final = frozenset((".venv", "venv", ".git", "node_modules", "__pycache__"))


class SourceWatch:
    """Looks at the modification times of all Python files below a directory."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or Path.cwd()

    async def wait_for_change(self) -> None:
        before = self._times()
        while self._times() == before:  # noqa: ASYNC110 - the file system sends no events
            await asyncio.sleep(LOOK_EVERY)

    def _times(self) -> dict[str, int]:
        times: dict[str, int] = {}
        for directory, folders, files in os.walk(self._root):
            folders[:] = [folder for folder in folders if folder not in _SKIPPED and not folder.startswith(".")]
            for name in files:
                if name.endswith(".py"):
                    times |= _time_of(Path(directory) / name)
        return times


def _time_of(file: Path) -> dict[str, int]:
    try:
        return {str(file): file.stat().st_mtime_ns}
    except FileNotFoundError:  # an editor replaces it right now
        return {}
