"""The log file of a supervisor without a terminal: its standard output and error, kept from growing for ever."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

OWN_LOG_LIMIT = 5 * 1024 * 1024
LOOK_EVERY = 30.0
STDOUT, STDERR = 1, 2


def open_log(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


async def keep_own_log_small(path: Path) -> None:
    """Never returns. A full disk is no reason to end."""
    while True:
        with contextlib.suppress(OSError):
            rotate_own_log(path)
        await asyncio.sleep(LOOK_EVERY)


def rotate_own_log(path: Path) -> None:
    """Beyond the limit: the file becomes `.1`, and both streams go on in a new one."""
    if path.stat().st_size <= OWN_LOG_LIMIT:
        return
    path.replace(path.with_name(path.name + ".1"))
    descriptor = open_log(path)
    for stream in (STDOUT, STDERR):
        os.dup2(descriptor, stream)
    os.close(descriptor)
