"""What became of a supervisor of this machine: it lives, it left in order, or it died."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from pgq_core.queries import Queries
from pgq_tui.supervisor.host_lock import HostLock
from pgq_tui.supervisor.options import default_state_dir
from pgq_tui.supervisor.question import answer_to


class Fate(StrEnum):
    LIVES = "lives"
    LEFT = "left"
    DIED = "died"


async def fate_of(dsn: str, schema: str, host: str, supervisor_id: str, *, state_dir: Path | None = None) -> Fate:
    """Who leaves in order takes its row along; who dies leaves it behind, with a lock that is free.

    The database is asked only when the lock is free. Raises DatabaseUnavailable.
    """
    lock = HostLock(state_dir or default_state_dir(), host=host, dsn=dsn, schema=schema)
    if not lock.proves_dead(supervisor_id):
        return Fate.LIVES
    row = await answer_to(dsn, Queries(schema).find_supervisor(host=host, stale_limit=timedelta()))
    return Fate.DIED if row is not None and row.supervisor_id == supervisor_id else Fate.LEFT
