"""A server of its own for one run, as durable as in production, that can be stopped in every way."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import psycopg

from pgq_core.embedded import EmbeddedServer

SETTINGS = {"fsync": "on", "synchronous_commit": "on", "max_connections": "200", "autovacuum_naptime": "5s"}


class TortureServer:
    def __init__(self, home: Path, name: str = "torture", **settings: str) -> None:
        self._embedded = EmbeddedServer(name, home, settings=SETTINGS | settings)
        self.url = self._embedded.start()

    @property
    def pid(self) -> int:
        pid = self._embedded.status().pid
        assert pid is not None, "the server is down"
        return pid

    @property
    def tcp_url(self) -> str:
        url = self._embedded.status().tcp_url
        assert url is not None, "the server is down"
        return url

    @property
    def log(self) -> Path:
        return self._embedded.status().data_directory.with_name("server.log")

    def start(self) -> float:
        """Answers the time from which on it took connections."""
        assert self._embedded.start() == self.url, "it came back under another address"
        with psycopg.connect(self.url):
            return time.time()

    def stop(self) -> None:
        """Fast: sessions are ended, everything is written out."""
        self._embedded.stop()

    def crash(self) -> None:
        """Immediate: as after a power failure it has to recover at the next start."""
        pid = self.pid
        os.kill(pid, signal.SIGQUIT)
        gone_within(pid, 30.0)

    def suspend(self) -> None:
        """All its processes stop where they are: it accepts connections, and answers none."""
        for process in self._processes():
            process.suspend()

    def resume(self) -> None:
        for process in self._processes():
            process.resume()

    def close(self) -> None:
        self._embedded.stop()

    def _processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(self.pid_of_file)
        return [postmaster, *postmaster.children()]

    @property
    def pid_of_file(self) -> int:
        """Without asking the server, which may be suspended."""
        return int((self._embedded.status().data_directory / "postmaster.pid").read_text().split()[0])


def gone_within(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)
