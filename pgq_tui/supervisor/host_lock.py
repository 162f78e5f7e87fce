"""The local half of being in charge of a host: a locked file, which proves at once who lives and who is dead."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_CONTENT = 4096
LOOKS, LOOK_SECONDS = 5, 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder wrote into the file."""

    supervisor_id: str
    pid: int


class HostLock:
    """The lease row says "stale" only after the stale limit; the kernel knows at once. A process that dies
    gives its lock back; a file that is free and names the row's holder proves that holder dead. No process id is
    ever trusted alone: it may belong to another program by now.
    """

    def __init__(self, directory: Path, *, host: str, dsn: str, schema: str) -> None:
        digest = hashlib.sha256(f"{host}\x1f{dsn}\x1f{schema}".encode("utf-8", "replace")).hexdigest()[:16]
        self.path = directory / f"supervisor-{digest}.lock"
        self._descriptor: int | None = None

    def take(self, holder: Holder) -> Holder | None:
        """Ours from now on, until `release` or death; returns who held it last. Raises BlockingIOError while another
        process holds it, another OSError where no such file can be kept.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
            former = _read(descriptor)
            content = json.dumps({"supervisor_id": holder.supervisor_id, "pid": holder.pid}).encode()
            os.pwrite(descriptor, content, 0)
            os.ftruncate(descriptor, len(content))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return former

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def living_holder(self) -> Holder | None:
        """Who holds the lock right now."""
        holder, is_held = self._look()
        return holder if is_held else None

    def proves_dead(self, supervisor_id: str) -> bool:
        """Whether that supervisor held this lock and no longer does."""
        holder, is_held = self._look()
        return not is_held and holder is not None and holder.supervisor_id == supervisor_id

    def signal_holder(self, number: signal.Signals) -> bool:
        """Send a signal to the living holder and to nobody else; False when there is none."""
        holder = self.living_holder()
        if holder is None:
            return False
        if sys.platform != "linux":
            os.kill(holder.pid, number)
            return True
        try:
            process = os.pidfd_open(holder.pid)
        except ProcessLookupError:
            return False
        try:
            # Looked at again with the process pinned: if it still holds the lock, the number cannot be somebody else's.
            if self.living_holder() != holder:
                return False
            signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(process)
        return True

    def _look(self) -> tuple[Holder | None, bool]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(descriptor), True
        else:
            return _read(descriptor), False
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Patient for a moment: whoever only looks holds a shared lock for as long as the look takes."""
    for _ in range(LOOKS):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(LOOK_SECONDS)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read(descriptor: int) -> Holder | None:
    """None for a new file, and for one that somebody else wrote."""
    try:
        content: Any = json.loads(os.pread(descriptor, MAX_CONTENT, 0))
        return Holder(str(content["supervisor_id"]), int(content["pid"]))
    except (ValueError, KeyError, TypeError):
        return None
