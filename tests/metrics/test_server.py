"""`/metrics` of processes that serve nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pgq_core.errors import InvalidSettings
from pgq_core.metrics import metrics_server
from pgq_core.metrics.server import MetricsServer
from pgq_core.settings import load_settings
from tests.metrics.samples import samples, value
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually, eventually_async

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """Below the ports that the system hands out by itself, to a connection of a neighbour for example."""
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", random.randrange(12_000, 32_000))) as held,
        ):
            return int(held.getsockname()[1])


async def test_a_server_runs_as_a_service_and_gives_its_port_back(dsn: str, database: QueueDatabase) -> None:
    database.put("a", queue="mails")
    server = MetricsServer(load_settings(dsn=dsn), 0, host="127.0.0.1", interval=0.1)
    stop = asyncio.Event()
    running = asyncio.create_task(server.run(stop))

    async def depth() -> float | None:
        async with httpx.AsyncClient(verify=False) as client:
            text = (await client.get(f"http://127.0.0.1:{server.port}/metrics")).text
        return samples(text).get(("jobs_depth", frozenset({"queue": "mails", "status": "pending"}.items())))

    assert await eventually_async(depth) == 1
    stop.set()
    await running
    with socket.create_server(("127.0.0.1", server.port)):
        pass


def test_a_port_that_cannot_be_had_is_said(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(InvalidSettings, match=f"127.0.0.1:{port}"):
            metrics_server(load_settings(dsn=dsn), port)


def test_a_worker_serves_metrics_beside_its_work(dsn: str, database: QueueDatabase, tmp_path: Path) -> None:
    app = tmp_path / "tasks.py"
    app.write_text("from pgq_core import handler\n\n@handler('hello')\ndef hello(data): ...\n")
    port = free_port()
    job_id = database.put("hello")
    worker = subprocess.Popen(
        [sys.executable, "-m", "pgq_core.cli", "worker", "--app", str(app), "--metrics-port", str(port)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": dsn},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def is_counted() -> bool:
            try:
                found = samples(httpx.get(f"http://127.0.0.1:{port}/metrics", verify=False).text)
            except httpx.TransportError:
                return False
            done = found.get(("jobs_processed_total", frozenset({"queue": "default", "result": "succeeded"}.items())))
            return done == 1 and value(found, "workers_alive") == 1

        eventually(is_counted, timeout=40, interval=0.2)
        assert database.outcomes(job_id) == ["succeeded"]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait(60)


@pytest.mark.slow
def test_a_supervisor_serves_metrics_beside_its_pools(dsn: str, database: QueueDatabase, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from pgq_core import handler\n\n@handler('hello')\ndef hello(data): ...\n")
    app = tmp_path / "tasks.py"
    (tmp_path / "pools.toml").write_text(f'[pools.mail]\napp = "{app}"\nqueues = ["mails"]\nwanted = 1\n')
    port = free_port()
    supervisor = subprocess.Popen(
        [
            *(sys.executable, "-c", "from pgq_tui.cli import main; main()", "supervise", "--host", "metrics-test"),
            *("--pools", str(tmp_path / "pools.toml"), "--metrics-port", str(port)),
        ],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": dsn},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _alive(port) == 1, timeout=40, interval=0.2)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(30) == 0
    finally:
        supervisor.kill()
        supervisor.wait(60)


def _alive(port: int) -> float | None:
    try:
        found = samples(httpx.get(f"http://127.0.0.1:{port}/metrics", verify=False).text)
    except httpx.TransportError:
        return None
    return found.get(("workers_alive", frozenset()))
