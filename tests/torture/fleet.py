"""A supervisor and its workers, as they run in production: real processes, to be killed, suspended and replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil

from pgq_core.settings import load_settings
from pgq_tui.supervisor import PoolDefinition, SupervisorOptions, TiedSupervisor, start_tied
from tests.support.queue_database import QueueDatabase, Row
from tests.support.waiting import eventually
from tests.torture.ledger import LEDGER_VARIABLE

POOL = "torture"
APP = str(Path(__file__).with_name("jobs.py"))
SETTINGS = {"heartbeat": 0.5, "stale_limit": 5.0, "reaper_interval": 0.5, "poll": 0.2, "grace": 5.0}
PATIENCE = 60.0
RUNNING = "SELECT id, pid FROM workers WHERE host = %s AND stopped_at IS NULL AND state = 'running'"


@dataclass
class Fleet:
    """`dsn`: where its programs connect to, perhaps through a proxy; `database` looks at it directly."""

    database: QueueDatabase
    dsn: str
    ledger: Path
    state: Path
    workers: int
    concurrency: int
    queues: tuple[str, ...] = ("default",)
    settings: dict[str, Any] = field(default_factory=dict)
    host: str = "torture"
    app: str = APP
    random: Random = field(default_factory=lambda: Random(4))
    supervisor: TiedSupervisor | None = None
    supervisors: list[TiedSupervisor] = field(default_factory=list)

    def start(self) -> Fleet:
        """Answers once all workers run."""
        self.supervise()
        self.until_full()
        return self

    def supervise(self) -> TiedSupervisor:
        self.supervisor = start_tied(self.options, timeout=PATIENCE)
        self.supervisors.append(self.supervisor)
        return self.supervisor

    @property
    def options(self) -> SupervisorOptions:
        pool = PoolDefinition(
            name=POOL,
            app=self.app,
            queues=self.queues,
            concurrency=self.concurrency,
            wanted=self.workers,
            maximum=max(self.workers, 1) * 2,
            env={LEDGER_VARIABLE: str(self.ledger)},
        )
        settings = load_settings(dsn=self.dsn, **(SETTINGS | self.settings))
        return SupervisorOptions(settings=settings, pools=(pool,), host=self.host, state_dir=self.state)

    def running(self) -> list[Row]:
        return self.database.all(RUNNING, self.host)

    def until_full(self, timeout: float = PATIENCE) -> float:
        """Until as many workers run as are wanted; answers how long that took."""
        begun = time.monotonic()
        eventually(lambda: len(self.running()) == self.workers, timeout=timeout, interval=0.05)
        return time.monotonic() - begun

    def runner_processes(self) -> list[psutil.Process]:
        """Of all supervisors, also of dead ones: whoever runs our application."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ"]):
            environment = process.info["environ"] or {}
            is_runner = "pgq_core.worker.runner" in (process.info["cmdline"] or [])
            if is_runner and environment.get(LEDGER_VARIABLE) == str(self.ledger):
                found.append(process)
        return found

    def resident_bytes(self) -> int:
        """Of the supervisor and all runners together."""
        assert self.supervisor is not None
        processes = [psutil.Process(self.supervisor.process.pid), *self.runner_processes()]
        return sum(process.memory_info().rss for process in processes)

    def until_replaced(self, worker_id: str, timeout: float = PATIENCE) -> float:
        """Until this one is known to be gone and all slots work; answers how long that took."""
        begun = time.monotonic()

        def is_replaced() -> bool:
            running = {row["id"] for row in self.running()}
            return worker_id not in running and len(running) == self.workers

        eventually(is_replaced, timeout=timeout, interval=0.02)
        return time.monotonic() - begun

    def signalled(self, number: signal.Signals) -> str | None:
        """A random worker gets a signal; answers its id, None when there is none."""
        if workers := self.running():
            chosen = self.random.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen["pid"], number)
                return str(chosen["id"])
        return None

    def signal_one(self, number: signal.Signals) -> bool:
        return self.signalled(number) is not None

    def kill_one(self) -> bool:
        return self.signal_one(signal.SIGKILL)

    def crashed_by_itself(self) -> list[Row]:
        """Workers that ended although nobody killed them."""
        return self.database.all(
            "SELECT id, exit_code, exit_signal, exit_reason FROM workers "
            "WHERE state IN ('crashed', 'lost') AND exit_signal IS DISTINCT FROM 'SIGKILL'"
        )

    def stop(self, timeout: float = PATIENCE) -> float:
        """Answers how long the supervisor took to leave."""
        assert self.supervisor is not None
        begun = time.monotonic()
        self.supervisor.ask_to_stop()
        assert self.supervisor.wait(timeout), "the supervisor is still there"
        return time.monotonic() - begun

    def end(self) -> None:
        """Nothing of it stays behind, whatever the test left suspended."""
        for process in self.runner_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        for supervisor in self.supervisors:
            supervisor.process.send_signal(signal.SIGCONT)  # not sent to one that has ended
            supervisor.ask_to_stop()
        for supervisor in self.supervisors:
            if not supervisor.wait(15.0):
                supervisor.process.kill()
                supervisor.wait(5.0)
        for process in self.runner_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
