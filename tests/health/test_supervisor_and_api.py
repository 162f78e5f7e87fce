"""Loops of a supervisor, and of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from pgq_core.api.app import create_app
from pgq_core.api.context import ApiContext
from pgq_core.api.settings import load_api_settings
from pgq_core.domain.snapshot import SupervisorView
from pgq_core.inspector import Inspector
from pgq_core.queries import Queries
from pgq_core.settings import load_settings
from tests.conftest import SCHEMA
from tests.supervisor.support import PATIENCE, Host, pool
from tests.support.waiting import eventually_async

LOOPS = {"heartbeat", "reconciler", "watch", "reaper", "promoter", "retention"}


@pytest.fixture
def host(dsn: str, tmp_path: Path) -> Iterator[Host]:
    supervised = Host(dsn, tmp_path / "state")
    yield supervised
    supervised.close()


@pytest.mark.slow
async def test_a_supervisor_tells_of_its_loops_and_a_stalled_one_shows(host: Host) -> None:
    host.supervise(pool(wanted=0))
    await eventually_async(lambda: _turns(host), timeout=PATIENCE, interval=0.2)

    with psycopg.connect(host.dsn) as holder:
        # The reconciler beats first, then reads the pools: it is the loop that stands still, not the process.
        holder.execute("LOCK TABLE worker_pools IN ACCESS EXCLUSIVE MODE")
        await eventually_async(lambda: _reconciler_is_old(host), timeout=PATIENCE, interval=0.2)

    await eventually_async(lambda: _turns(host), timeout=PATIENCE, interval=0.2)


async def _turns(host: Host) -> bool:
    view = await _supervisor(host)
    return view is not None and {loop.name for loop in view.loops} >= LOOPS and not view.stalled_loops


async def _reconciler_is_old(host: Host) -> bool:
    """Read without the tables that are locked."""
    (row,) = host.rows(
        "SELECT extract(epoch FROM now() - heartbeat_at) + (loops -> 'reconciler' ->> 'age')::float8 AS age "
        "FROM supervisors"
    )
    return bool(row["age"] > 5.0)


async def _supervisor(host: Host) -> SupervisorView | None:
    async with await psycopg.AsyncConnection.connect(host.dsn, autocommit=True) as conn:
        overview = await Inspector(Queries(SCHEMA), stale_limit=timedelta(seconds=5)).overview(conn)
    return overview.supervisors[0] if overview.supervisors else None


async def test_readyz_shows_its_loops_and_names_one_that_is_stuck(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ApiContext(load_settings(dsn=dsn), load_api_settings())
    held = asyncio.Event()

    async def hang() -> None:
        await held.wait()

    transport = httpx.ASGITransport(create_app(context))
    async with context.running(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def answers(status: int) -> httpx.Response | None:
            answer = await client.get("/readyz")
            return answer if answer.status_code == status else None

        ready = await eventually_async(lambda: answers(200), timeout=PATIENCE, interval=0.05)
        assert ready is not None
        assert set(ready.json()["loops"]) == {"readiness", "metrics"}

        monkeypatch.setattr(context.metrics, "run_once", hang)
        context.metrics._limit = 0.05
        context.metrics.nudge()
        stuck = await eventually_async(lambda: answers(503), timeout=PATIENCE, interval=0.05)
        assert stuck is not None
        assert "'metrics'" in stuck.text

        held.set()
        context.metrics._limit = 30.0
        await eventually_async(lambda: answers(200), timeout=PATIENCE, interval=0.05)
