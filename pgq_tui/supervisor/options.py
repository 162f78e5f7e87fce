"""What a supervisor is told when it starts."""

from __future__ import annotations

import socket
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, Field

from pgq_core.settings import Settings
from pgq_tui.supervisor.definitions import PoolDefinition


def default_state_dir() -> Path:
    return platformdirs.user_state_path("pgq-tui", appauthor=False)


class EmbeddedName(BaseModel):
    """Which embedded server to keep alive while the supervisor runs."""

    model_config = ConfigDict(frozen=True)

    name: str = "main"
    home: Path | None = None


class SupervisorOptions(BaseModel):
    """Everything in one value that can be handed to another process.

    With `settings.dsn` None the supervisor uses, and keeps alive, the server `embedded`; with an address it keeps that
    server alive only when `embedded` is given.
    """

    model_config = ConfigDict(frozen=True)

    settings: Settings
    pools: tuple[PoolDefinition, ...]
    host: str = Field(default_factory=socket.gethostname)
    embedded: EmbeddedName | None = None
    with_maintenance: bool = True
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Where to serve metrics for Prometheus, on loopback; None: nowhere."""
    state_dir: Path = Field(default_factory=default_state_dir)
    """Where locks and logs stand."""

    @property
    def longest_grace(self) -> float:
        return max([self.settings.grace, *(pool.grace for pool in self.pools if pool.grace is not None)])
