"""The machine a benchmark runs on, and what its processes have used of it so far."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_POSTGRES = "postgres"
_IDLE = ("idle", "iowait", "steal", "guest", "guest_nice")


@dataclass(frozen=True, slots=True)
class Machine:
    system: str
    processor: str
    cores: int
    memory_bytes: int
    python: str

    def __str__(self) -> str:
        gibibytes = self.memory_bytes / 2**30
        return f"{self.cores} × {self.processor}, {gibibytes:.0f} GiB, {self.system}, Python {self.python}"


def this_machine() -> Machine:
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def busy_seconds() -> float:
    """CPU seconds that everything on this machine has used since it started; time stolen by a host is not ours."""
    times = psutil.cpu_times()
    return float(sum(getattr(times, name) for name in times._fields if name not in _IDLE))


@dataclass(frozen=True, slots=True)
class Usage:
    """What some processes have used so far (CPU seconds) and hold now (bytes of the largest of them)."""

    cpu: float = 0.0
    largest_rss: int = 0


def usage_of(pids: Iterable[int], *, apart_from: Path | None = None) -> Usage:
    """Processes that are gone count as nothing, and so do the pages of the mapped file `apart_from`."""
    cpu, largest = 0.0, 0
    for process in _living(pids):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            cpu += times.user + times.system
            largest = max(largest, process.memory_info().rss - _mapped(process, apart_from))
    return Usage(cpu, largest)


def _mapped(process: psutil.Process, file: Path | None) -> int:
    """Bytes of the file that the process has in memory; 0 where the system does not tell."""
    if file is None or not hasattr(process, "memory_maps"):
        return 0
    return sum(mapping.rss for mapping in process.memory_maps() if mapping.path == str(file))


def children_of(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def postmaster_of(backend_pid: int) -> int | None:
    """The server's first process, when the server runs on this machine where we can see it."""
    try:
        backend = psutil.Process(backend_pid)
        parent = backend.parent()
        if parent is not None and _POSTGRES in backend.name() and _POSTGRES in parent.name():
            return int(parent.pid)
    except psutil.Error:
        pass
    return None


def server_cpu(postmaster: int | None) -> float | None:
    """CPU seconds of a server so far, backends that have ended included; None where it cannot be seen."""
    if postmaster is None:
        return None
    try:
        process = psutil.Process(postmaster)
        times = process.cpu_times()
        ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return float(times.user + times.system + ended + usage_of(children_of(postmaster)).cpu)
    except psutil.Error:
        return None


def _living(pids: Iterable[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid)
