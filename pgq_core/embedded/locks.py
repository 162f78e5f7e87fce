"""File locks that the kernel releases when their process dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` as a lock that one process at a time can have; wait for it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Lease:
    """One user's claim on the server: a locked file named after the process that holds it."""

    path: Path
    descriptor: int

    def release(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class Leases:
    """The users of one server: a directory with one locked file each.

    A file per user, not one shared lock, so that the users can be counted and named. Take and release them under the
    server's gate only: otherwise a starter and the last leaver could miss each other.
    """

    directory: Path

    def take(self) -> Lease:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        path = self.directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return Lease(path, descriptor)

    def holders(self) -> tuple[int, ...]:
        """Process ids of the living users."""
        return tuple(sorted(_process_of(path) for path in self._files() if _is_held(path)))

    def forget_the_dead(self) -> None:
        for path in self._files():
            if not _is_held(path):
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.directory.iterdir()) if self.directory.is_dir() else []


def _process_of(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False  # Released between the listing and this look.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
