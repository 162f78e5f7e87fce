"""The log files of all workers of one supervisor, in one bounded directory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from pgq_core.logs import get_logger
from pgq_core.worker import KeeperEvent, KeeperEventKind, RunnerHandle
from pgq_tui.supervisor.worker_log import WorkerLog, sweep_logs

LOGS_KEPT = 200
FLUSH_AFTER = 0.2

logger = get_logger("pgq.supervisor")


class WorkerLogs:
    """One file per worker, named by its id. Lines of a moment are written together."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._logs: dict[str, WorkerLog] = {}
        self._timer: asyncio.TimerHandle | None = None

    def on_output(self, handle: RunnerHandle, _stream: str, lines: list[str]) -> None:
        log = self._logs.get(handle.worker_id)
        if log is None:
            log = self._logs[handle.worker_id] = WorkerLog(self._directory / f"{handle.worker_id}.log")
        for line in lines:
            log.append(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self._flush)

    def on_event(self, event: KeeperEvent) -> None:
        if event.kind is KeeperEventKind.EXITED and event.handle is not None:
            self._close(event.handle.worker_id)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for worker_id in list(self._logs):
            self._close(worker_id)

    def _flush(self) -> None:
        self._timer = None
        for log in self._logs.values():
            log.flush(time.monotonic())

    def _close(self, worker_id: str) -> None:
        log = self._logs.pop(worker_id, None)
        if log is None:
            return
        log.close(time.monotonic())
        if log.dropped:
            logger.warning("worker_log_incomplete", worker_id=worker_id, path=str(log.path), lines=log.dropped)
        sweep_logs(self._directory, keep=LOGS_KEPT, in_use=[other.path for other in self._logs.values()])
