"""What can keep a supervisor from its work, in sentences."""

from __future__ import annotations

from pathlib import Path

from pgq_core.errors import InvalidSettings, PgqError


class PoolsFileMissing(InvalidSettings):
    """A host without a file that says what its pools execute."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} does not exist; it says what this host's pools execute. "
            'Smallest form: [pools.default] with app = "tasks" and wanted = 2'
        )


class SupervisorRunning(PgqError):
    """Another supervisor is in charge of this host's pools."""

    def __init__(self, host: str, supervisor_id: str, pid: int) -> None:
        self.host = host
        self.supervisor_id = supervisor_id
        self.pid = pid
        super().__init__(
            f"supervisor {supervisor_id} is in charge of the pools of {host}; stop it first: kill -TERM {pid}"
        )


class SupervisorNotStarted(PgqError):
    """A supervisor process that ended, or did not report, before it was in charge. `is_running`: another one is."""

    def __init__(self, reason: str, log: Path, *, is_running: bool = False) -> None:
        self.reason = reason
        self.log = log
        self.is_running = is_running
        super().__init__(f"the supervisor did not start: {reason} (its log: {log})")
