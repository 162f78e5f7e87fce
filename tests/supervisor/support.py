"""A database with pools, seen as an operator sees it, and supervisors that no failing test leaves behind."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.rows import dict_row

from pgq_core.job_queue import JobQueue
from pgq_core.settings import load_settings
from pgq_tui.supervisor import PoolDefinition, SupervisorOptions, TiedSupervisor, start_tied
from tests.support.queue_database import until_started
from tests.support.waiting import eventually

APP = str(Path(__file__).with_name("app.py"))
HOST = "test-host"
PATIENCE = 60.0
"""Programs start slowly on a busy machine; nothing waits this long for what is there."""


def pool(name: str = "web", **changes: Any) -> PoolDefinition:
    fields: dict[str, Any] = {"app": APP, "queues": ("default",), "concurrency": 2, "maximum": 8}
    return PoolDefinition(name=name, **{**fields, **changes})


@dataclass
class Host:
    """One host with its database."""

    dsn: str
    state_dir: Path
    supervisors: list[TiedSupervisor] = field(default_factory=list)
    _conn: psycopg.Connection[dict[str, Any]] | None = None

    def options(self, *pools: PoolDefinition, **settings: Any) -> SupervisorOptions:
        values = {"heartbeat": 0.5, "stale_limit": 30.0, "reaper_interval": 0.5, "poll": 0.1, "grace": 3.0, **settings}
        return SupervisorOptions(
            settings=load_settings(dsn=self.dsn, **values),
            pools=pools or (pool(),),
            host=HOST,
            state_dir=self.state_dir,
        )

    def supervise(self, *pools: PoolDefinition, **settings: Any) -> TiedSupervisor:
        supervisor = start_tied(self.options(*pools, **settings))
        self.supervisors.append(supervisor)
        return supervisor

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """On one connection: waiting tests ask often. One that an outage has cut is opened again."""
        with contextlib.suppress(psycopg.OperationalError):
            return self._rows(statement, values)
        self._hang_up()
        return self._rows(statement, values)

    def workers(self, *states: str) -> list[dict[str, Any]]:
        """Live workers by age; in these states, by default those that run."""
        return self.rows(
            "SELECT * FROM workers WHERE stopped_at IS NULL AND state = ANY(%s) ORDER BY started_at, id",
            list(states or ("running",)),
        )

    def until_running(self, count: int) -> list[dict[str, Any]]:
        """Exactly so many workers run, and no other is starting."""

        def ready() -> list[dict[str, Any]] | None:
            found = self.workers("starting", "running")
            return found if len(found) == count and all(row["state"] == "running" for row in found) else None

        return eventually(ready, timeout=PATIENCE) if count else self.until_gone()

    def until_gone(self) -> list[dict[str, Any]]:
        eventually(lambda: not self.workers("starting", "running", "draining"), timeout=PATIENCE)
        return []

    def scale(self, wanted: int, name: str = "web") -> None:
        """As an operator's verb does it."""
        self.rows("UPDATE worker_pools SET wanted = %s WHERE host = %s AND name = %s", wanted, HOST, name)
        self.rows("SELECT pg_notify(wake_channel(), 'pools')")

    def pool_row(self, name: str = "web") -> dict[str, Any]:
        return self.rows("SELECT * FROM worker_pools WHERE host = %s AND name = %s", HOST, name)[0]

    def enqueue(self, job_type: str, data: dict[str, Any], count: int = 1, **options: Any) -> list[int]:
        with JobQueue(self.dsn) as queue:
            return [queue.enqueue(job_type, data, **options).id for _ in range(count)]

    def until_started(self, count: int) -> None:
        until_started(self.rows, count)

    def until_outcomes(self, **counts: int) -> None:
        """So many runs have ended so, and no others."""

        def same() -> bool:
            rows = self.rows("SELECT outcome, count(*) AS n FROM job_runs GROUP BY 1")
            return {row["outcome"]: row["n"] for row in rows} == counts

        eventually(same, timeout=PATIENCE)

    def until_stopped(self, supervisor: TiedSupervisor, timeout: float = PATIENCE) -> int:
        assert supervisor.wait(timeout), "the supervisor is still there"
        return int(supervisor.process.returncode)

    def _rows(self, statement: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        if self._conn is None:
            self._conn = psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row)
        cursor = self._conn.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []

    def _hang_up(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = None

    def close(self) -> None:
        self._hang_up()
        for supervisor in self.supervisors:
            supervisor.ask_to_stop()
        for supervisor in self.supervisors:
            if not supervisor.wait(PATIENCE):
                supervisor.process.kill()
                supervisor.wait(PATIENCE)


def all_gone(pids: list[int]) -> bool:
    """Zombies that somebody else has to collect do not run any more."""
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)
