"""Pools of workers, kept at their wanted numbers by one supervisor per host. Knows nothing of a screen."""

from __future__ import annotations

from pgq_tui.supervisor.definitions import PoolDefinition, default_pools_file, load_pools
from pgq_tui.supervisor.errors import PoolsFileMissing, SupervisorNotStarted, SupervisorRunning
from pgq_tui.supervisor.fate import Fate, fate_of
from pgq_tui.supervisor.launch import (
    SupervisorInfo,
    TiedSupervisor,
    find_running,
    start_detached,
    start_tied,
    stop_detached,
)
from pgq_tui.supervisor.options import EmbeddedName, SupervisorOptions
from pgq_tui.supervisor.run import run_supervisor

__all__ = [
    "PoolDefinition",
    "load_pools",
    "default_pools_file",
    "SupervisorOptions",
    "EmbeddedName",
    "run_supervisor",
    "start_detached",
    "start_tied",
    "find_running",
    "Fate",
    "fate_of",
    "stop_detached",
    "SupervisorInfo",
    "TiedSupervisor",
    "PoolsFileMissing",
    "SupervisorRunning",
    "SupervisorNotStarted",
]
