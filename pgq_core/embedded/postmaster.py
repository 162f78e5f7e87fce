"""The server process, as its `postmaster.pid` tells of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgq_core.embedded.errors import EmbeddedServerFailed

PID_FILE = "postmaster.pid"

# How long each way to stop may take before the next, harder one: fast (roll back, checkpoint), then immediate
# (recover at the next start).
STOP_STEPS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0))


@dataclass(frozen=True, slots=True)
class Postmaster:
    """One running (or once running) server."""

    pid: int
    data_directory: Path
    port: int
    socket_directory: Path | None

    @classmethod
    def read(cls, data_directory: Path) -> Postmaster | None:
        """What the pid file says, if it says anything whole. It may be stale: ask `is_alive`."""
        try:
            lines = (data_directory / PID_FILE).read_text().splitlines()
            pid, _, _, port, socket_directory = lines[:5]
            return cls(int(pid), data_directory, int(port), Path(socket_directory) if socket_directory else None)
        except (OSError, ValueError):
            return None

    @property
    def is_alive(self) -> bool:
        """Whether that process still is this server: process ids are used again, and a zombie serves nobody."""
        return serves(self.pid, self.data_directory)

    @property
    def name(self) -> str:
        """Of this one process, also after its id was given to another."""
        try:
            return f"{self.pid} {psutil.Process(self.pid).create_time():.2f}"
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return f"{self.pid} ended"

    @property
    def is_frozen(self) -> bool:
        """Whether a signal or a debugger holds the process still: it answers nobody until it is released."""
        try:
            return psutil.Process(self.pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def stop(self) -> None:
        """Shut down and wait for the end; transactions of others are rolled back."""
        for number, patience in STOP_STEPS:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if self._ends_within(patience):
                return
        raise EmbeddedServerFailed(f"(process {self.pid}) does not stop; end it by hand")

    def _ends_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.is_alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        # As process 1 of a container this process inherits the server: nobody else would take its exit status.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return True


def cluster_name(data_directory: Path) -> str:
    """What marks this server's process in its command line and in lists of processes; safe in any shell."""
    return f"pgq-{hashlib.sha256(os.fsencode(data_directory)).hexdigest()[:16]}"


def serves(pid: int, data_directory: Path) -> bool:
    """Whether process `pid` is the server on `data_directory`, by its command line, which every user may read."""
    try:
        process = psutil.Process(pid)
        if process.name() != "postgres" or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return f"cluster_name={cluster_name(data_directory)}" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def remove_stale_pid_file(data_directory: Path) -> None:
    """Remove a pid file that no server of this data directory stands behind.

    PostgreSQL clears one by itself when its process is gone, but refuses to start when the number now belongs to
    another process of the same user, to a zombie, or cannot be read. Call it under the server's gate only.
    """
    path = data_directory / PID_FILE
    if path.exists() and not any(serves(pid, data_directory) for pid in psutil.pids()):
        path.unlink(missing_ok=True)
