"""Workers as real processes: a keeper and its runner, to be stopped, killed and suspended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.queue_database import QueueDatabase
from tests.support.waiting import TIMEOUT, eventually

ROOT = Path(__file__).parents[2]
APP = "tests.worker.kinds"
FAST = {
    "PGQ_HEARTBEAT": "0.1",
    # Nobody is taken for dead because the machine was busy. Tests of those who are dead name a limit of their own.
    "PGQ_STALE_LIMIT": "60",
    "PGQ_REAPER_INTERVAL": "0.1",
    "PGQ_POLL": "0.1",
    "PGQ_GRACE": "5",
    "PGQ_LOG_LEVEL": "info",
}


class WorkerProcess:
    """One `pgq-core worker`, its output in a file."""

    def __init__(
        self, database: QueueDatabase, log: Path, *arguments: str, apps: tuple[str, ...] = (APP,), **settings: object
    ) -> None:
        self._database = database
        self.log = log
        environment = {**os.environ, **FAST, "DATABASE_URL": database.dsn, "LEDGER_DSN": database.dsn}
        environment |= {f"PGQ_{name.upper()}": str(value) for name, value in settings.items()}
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.program", *apps, *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def keeper_pid(self) -> int:
        return self.process.pid

    def runner(self) -> psutil.Process | None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                if "pgq_core.worker.runner" in child.cmdline():
                    return child
        return None

    @property
    def runner_pid(self) -> int:
        runner = eventually(self.runner)
        assert runner is not None
        return runner.pid

    def wait_until_ready(self) -> str:
        """The worker's id, once it is running."""
        pid = self.runner_pid
        row = eventually(lambda: self._database.all("SELECT id FROM workers WHERE pid = %s AND state = 'running'", pid))
        return str(row[0]["id"])

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self, *, timeout: float = TIMEOUT) -> int:
        """SIGTERM, as systemd and Docker do. Answers the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill_all(self) -> None:
        """The whole worker at once, as a power failure would."""
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]
            for process in reversed(family):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait(TIMEOUT)


class Workers:
    """Starts workers and ends those that a test leaves behind."""

    def __init__(self, database: QueueDatabase, directory: Path) -> None:
        self._database = database
        self._directory = directory
        self._started: list[WorkerProcess] = []

    def start(self, *arguments: str, ready: bool = True, **settings: object) -> WorkerProcess:
        log = self._directory / f"worker-{len(self._started)}.log"
        worker = WorkerProcess(self._database, log, *arguments, **settings)  # type: ignore[arg-type]  # settings are names and numbers
        self._started.append(worker)
        if ready:
            worker.wait_until_ready()
        return worker

    def end(self) -> None:
        for worker in self._started:
            if worker.process.poll() is None:
                for pid in (worker.keeper_pid, getattr(worker.runner(), "pid", None)):
                    with contextlib.suppress(ProcessLookupError):
                        if pid is not None:
                            os.kill(pid, signal.SIGCONT)
                worker.kill_all()


@contextlib.contextmanager
def workers_on(database: QueueDatabase, directory: Path) -> Iterator[Workers]:
    workers = Workers(database, directory)
    try:
        yield workers
    finally:
        workers.end()
