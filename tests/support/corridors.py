"""A runner's corridor inside the test's own process: quick, and its parts can be looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pgq_core.database import connect
from pgq_core.handlers import Registry
from pgq_core.queries import Queries
from pgq_core.settings import load_settings
from pgq_core.worker.corridor import Corridor
from pgq_core.worker.marks import Marks
from pgq_core.worker.protocol import RunnerOrders

WORKER_ID = "test-worker-1"


@dataclass
class RunningCorridor:
    corridor: Corridor
    marks: Marks
    stuck: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def running_corridor(
    dsn: str,
    registry: Registry,
    *,
    concurrency: int = 5,
    queues: tuple[str, ...] = ("default",),
    worker_id: str = WORKER_ID,
    **settings: object,
) -> AsyncIterator[RunningCorridor]:
    """Registered, claiming, and drained at the end."""
    # Nobody beats for it: no test may take longer than this stale limit.
    fast = {"heartbeat": 0.1, "stale_limit": 300, "reaper_interval": 0.1, "poll": 0.05, "grace": 5.0}
    all_settings = load_settings(dsn=dsn, **{**fast, **settings})
    await register(dsn, worker_id, queues)
    marks = Marks.create(concurrency)
    orders = RunnerOrders(
        worker_id=worker_id,
        slot=0,
        apps=(),
        queues=queues,
        concurrency=concurrency,
        burst=False,
        settings=all_settings,
        report_descriptor=-1,
        marks_descriptor=marks.descriptor,
    )
    stuck: list[str] = []
    corridor = Corridor(orders, registry, marks, {"name": "resource"}, on_stuck=stuck.append, on_spoiled=stuck.append)
    await corridor.open()
    corridor.start()
    try:
        yield RunningCorridor(corridor, marks, stuck)
    finally:
        await corridor.stop_claiming(1.0)
        await corridor.finish_running(1.0, asyncio.Event())
        await corridor.write_out(1.0)
        await corridor.close()


async def register(dsn: str, worker_id: str, queues: tuple[str, ...] = ("default",)) -> None:
    async with await connect(dsn, application_name="test") as conn:
        statement = Queries("pgq_core").register_worker(
            worker_id=worker_id,
            host="test",
            pool=None,
            supervisor_id=None,
            queues=queues,
            concurrency=1,
            version="0",
        )
        await statement.execute(conn)
