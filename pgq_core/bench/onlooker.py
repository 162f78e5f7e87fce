"""Somebody who looks at the console: reads the dashboard's picture at the console's pace, in a process of its own.

Run by the benchmark as `python -m pgq_core.bench.onlooker`; the address comes as one line of JSON on stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.figures import percentiles_of
from pgq_core.bench.machine import server_cpu, usage_of
from pgq_core.bench.server import SCHEMA
from pgq_core.database import connect
from pgq_core.inspector import Inspector
from pgq_core.queries import Queries

TICK: Final = 1.0
PROGRAM = "pgq bench onlooker"
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Look:
    """CPU seconds of the onlooker's backend and of the whole server, where they can be seen."""

    at: float
    backend: float
    server: float | None


class Onlooker:
    """The benchmark's side."""

    def __init__(self, dsn: str, postmaster: int | None) -> None:
        self._dsn = dsn
        self._postmaster = postmaster
        self._looks: list[_Look] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "pgq_core.bench.onlooker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("pipes were asked for")
        self._process.stdin.write(json.dumps(self._dsn).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise BenchFailed("the onlooker could not start; its words stand above")
        self._backend = int(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """The time that counts."""
        self._looks = [self._look()]
        yield
        self._looks.append(self._look())

    def values(self) -> dict[str, float]:
        """Ends the onlooker: how long its ticks took, and its share of what was used while it was watched."""
        output, _ = self._process.communicate(timeout=_ANSWER_SECONDS)
        ticks: list[float] = json.loads(output)
        found = percentiles_of(ticks, "tick") | {"samples": len(ticks)}
        before, after = self._looks
        if self._postmaster is not None and before.server is not None and after.server is not None:
            used = after.backend - before.backend
            found["console_core_share"] = used / (after.at - before.at)
            found["console_server_share"] = used / max(after.server - before.server, 1e-9)
        return found

    def _look(self) -> _Look:
        return _Look(time.monotonic(), usage_of([self._backend]).cpu, server_cpu(self._postmaster))


async def look_on(dsn: str) -> list[float]:
    """Reads the picture every second until stdin ends; how long each took."""
    inspector, ticks = Inspector(Queries(SCHEMA)), []
    loop = asyncio.get_running_loop()
    told_to_end = loop.run_in_executor(None, sys.stdin.buffer.read)
    async with await connect(dsn, application_name=PROGRAM, read_only=True) as conn:
        print(conn.info.backend_pid, flush=True)  # noqa: T201 - the first line of the answer
        while not told_to_end.done():
            started_at = time.monotonic()
            await inspector.overview(conn)
            ticks.append(time.monotonic() - started_at)
            await asyncio.wait([told_to_end], timeout=max(0.0, TICK - ticks[-1]))
    return ticks


def main() -> None:
    dsn: str = json.loads(sys.stdin.buffer.readline())
    json.dump(asyncio.run(look_on(dsn)), sys.stdout)


if __name__ == "__main__":
    main()
