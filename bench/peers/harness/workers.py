"""A peer's worker processes, and the file in which they count what they start."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO

from harness.peers import ADAPTERS, Peer, PeerFailed
from pgq_core.bench.machine import children_of, usage_of

SLOT_BYTES = 64
STAMPS_AT = 4096
MOST_WORKERS = STAMPS_AT // SLOT_BYTES
_STOP_SECONDS = 5.0
_LAST_WORDS = 2000


class Workers:
    """`with` starts `count` of them and waits until each says it is ready; `go()` lets them work."""

    def __init__(self, peer: Peer, dsn: str, count: int, *, stamps: int = 0) -> None:
        if count > MOST_WORKERS:
            raise PeerFailed(f"there is room for {MOST_WORKERS} workers, not for {count}")
        self._peer = peer
        self._dsn = dsn
        self._count = count
        self._stamps = stamps
        self._processes: list[subprocess.Popen[str]] = []
        self._errors: list[IO[str]] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        with self._stack:
            descriptor, name = tempfile.mkstemp(prefix="bench-recording-")
            self._stack.callback(Path(name).unlink)
            os.ftruncate(descriptor, STAMPS_AT + 8 * max(1, self._stamps))
            self._memory = self._stack.enter_context(mmap.mmap(descriptor, 0))
            os.close(descriptor)
            self._stack.callback(self.stop)
            for slot in range(self._count):
                self._start(slot, name)
            for process in self._processes:
                self._wait_until_ready(process)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def go(self) -> None:
        for process in self._processes:
            process.stdin.write("GO\n")
            process.stdin.flush()

    def started(self) -> int:
        return sum(self.shares())

    def shares(self) -> list[int]:
        """Jobs started, by worker."""
        return [self._slot(slot)[0] for slot in range(self._count)]

    def first_start(self) -> int | None:
        """Nanoseconds of the monotonic clock."""
        return min((first for slot in range(self._count) if (first := self._slot(slot)[1])), default=None)

    def start_of(self, number: int) -> int | None:
        return struct.unpack_from("<Q", self._memory, STAMPS_AT + 8 * number)[0] or None

    def cpu_seconds(self) -> float:
        """Of the processes and all that they have started, so far."""
        roots = [process.pid for process in self._processes]
        return usage_of(roots + [child for root in roots for child in children_of(root)]).cpu

    def last_words(self) -> str:
        words = []
        for log in self._errors:
            log.flush()
            log.seek(0)
            words.append(log.read()[-_LAST_WORDS:])
        return "\n".join(words)

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for log in self._errors:
            log.close()
        self._processes, self._errors = [], []

    def _start(self, slot: int, recording: str) -> None:
        # Log lines go to a file, as under a service manager: writing them is part of what a worker costs.
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by stop()
        self._errors.append(log)
        arguments = [
            "--dsn",
            self._dsn,
            "--rec",
            recording,
            "--slot",
            str(slot),
            *(["--stamps"] if self._stamps else []),
        ]
        self._processes.append(
            subprocess.Popen(
                self._peer.work_command(*arguments),
                env=self._peer.environment,
                cwd=ADAPTERS,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        )

    def _wait_until_ready(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout:
            if line.strip() == "READY":
                threading.Thread(target=_swallow, args=(process.stdout,), daemon=True).start()
                return
        raise PeerFailed(f"{self._peer.name}: a worker ended before it was ready: {self.last_words()}")

    def _slot(self, slot: int) -> tuple[int, int, int]:
        started, first, last = struct.unpack_from("<QQQ", self._memory, slot * SLOT_BYTES)
        return started, first, last


def _swallow(stream: IO[str]) -> None:
    """Nobody blocks because nobody reads."""
    with contextlib.suppress(ValueError):  # closed under us
        for _ in stream:
            pass
