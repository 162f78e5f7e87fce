"""Workers: keepers and their runners."""

from __future__ import annotations

from pgq_core.worker.backoff import RestartBackoff
from pgq_core.worker.events import KeeperEvent, KeeperEventKind
from pgq_core.worker.exits import ExitKind, RunnerExit
from pgq_core.worker.foreground import run_worker
from pgq_core.worker.handle import RunnerHandle, RunnerState
from pgq_core.worker.keeper import Keeper
from pgq_core.worker.options import WorkerOptions
from pgq_core.worker.spec import RunnerSpec

__all__ = [
    "WorkerOptions",
    "run_worker",
    "Keeper",
    "KeeperEvent",
    "KeeperEventKind",
    "RunnerHandle",
    "RunnerState",
    "RunnerSpec",
    "RunnerExit",
    "ExitKind",
    "RestartBackoff",
]
