"""A running demo: its server, its supervisor with workers, its customers; all of it gone when the session ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pgq_core.database import connect_sync
from pgq_core.embedded import EmbeddedServer
from pgq_core.embedded.server import default_home
from pgq_core.job_queue import JobQueue
from pgq_core.migrate import migrate
from pgq_core.settings import load_settings
from pgq_tui.demo import shop
from pgq_tui.demo.history import seed_history
from pgq_tui.demo.statements import shop_statement
from pgq_tui.supervisor import (
    EmbeddedName,
    PoolDefinition,
    SupervisorNotStarted,
    SupervisorOptions,
    TiedSupervisor,
    start_tied,
)
from pgq_tui.supervisor.own_log import open_log

SERVER = "demo"
SCHEMA = "pgq_core"
APP = "pgq_tui.demo.shop:shop"
# A demo's data may be lost with the machine; it starts and runs faster so.
SERVER_SETTINGS = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
GRACE = 2.0
LEAVE_SECONDS = GRACE + 4.0


@dataclass(slots=True)
class DemoSession:
    """`dsn` is the demo's database. A second demo on the same home joins the first one and has no children of its own.

    The children notice by themselves when this process is gone, however it ended.
    """

    dsn: str = ""
    schema: str = SCHEMA
    supervisor: TiedSupervisor | None = None
    producer: subprocess.Popen[bytes] | None = None
    leases: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def child_pids(self) -> tuple[int, ...]:
        children = (self.supervisor.process if self.supervisor else None, self.producer)
        return tuple(child.pid for child in children if child is not None)

    def stop(self) -> None:
        """Stops everything this session started and waits for it; bounded. A second call does nothing."""
        try:
            self._stop_producer()
            self._stop_supervisor()
        finally:
            self.leases.close()

    def _stop_producer(self) -> None:
        producer, self.producer = self.producer, None
        if producer is None:
            return
        if producer.stdin is not None:
            producer.stdin.close()
        try:
            producer.wait(2.0)
        except subprocess.TimeoutExpired:
            producer.kill()
            producer.wait()

    def _stop_supervisor(self) -> None:
        supervisor, self.supervisor = self.supervisor, None
        if supervisor is None:
            return
        supervisor.ask_to_stop()
        if not supervisor.wait(LEAVE_SECONDS):
            supervisor.process.kill()
            supervisor.wait(LEAVE_SECONDS)


def start_demo(
    home: Path | None = None,
    *,
    on_progress: Callable[[str], None] = lambda _: None,
    on_silence: Callable[[str], None] | None = None,
) -> DemoSession:
    """Start the demo below `home` (default: where embedded servers live). Takes a few seconds the first time.

    `on_silence` is told when its server does not answer at the end.
    """
    home = home or default_home()
    session = DemoSession()
    try:
        on_progress("starting PostgreSQL")
        server = EmbeddedServer(SERVER, home, settings=SERVER_SETTINGS)
        session.dsn = session.leases.enter_context(server.lease(on_silence=on_silence))
        on_progress("opening the shop")
        migrate(session.dsn, schema=SCHEMA)
        _open_shop(session.dsn)
        on_progress("calling workers")
        session.supervisor = _start_supervisor(session.dsn, home)
        if session.supervisor is not None:
            session.producer = _start_producer(session.dsn, home)
    except BaseException:
        session.stop()
        raise
    return session


def demo_pools(home: Path) -> tuple[PoolDefinition, ...]:
    """Three pools, five workers."""
    env = {"SHOP_PICTURES": str(home / SERVER / "pictures")}
    return (
        PoolDefinition(name="mail", app=APP, queues=(shop.EMAILS,), concurrency=8, wanted=2, minimum=0, maximum=6),
        PoolDefinition(name="office", app=APP, queues=(shop.BILLING, shop.REPORTS), concurrency=6, wanted=2, maximum=6),
        PoolDefinition(name="images", app=APP, queues=(shop.IMAGES,), concurrency=2, wanted=1, maximum=4, env=env),
    )


def _open_shop(dsn: str) -> None:
    with connect_sync(dsn, application_name="pgq demo") as conn:
        with conn.transaction():
            conn.execute(shop_statement("lock_shop"))
            is_new = conn.execute(shop_statement("shop_is_missing")).fetchone() == (True,)
            if is_new:
                conn.execute(shop_statement("create_shop"))
        if is_new:
            with JobQueue(dsn, schema=SCHEMA) as queue:
                seed_history(conn, queue, SCHEMA)


def _start_supervisor(dsn: str, home: Path) -> TiedSupervisor | None:
    """None when another demo on this home has one."""
    options = SupervisorOptions(
        settings=load_settings(dsn=dsn, db_schema=SCHEMA, heartbeat=1.0, stale_limit=10.0, grace=GRACE),
        pools=demo_pools(home),
        embedded=EmbeddedName(name=SERVER, home=home),
        state_dir=home / SERVER / "state",
    )
    try:
        return start_tied(options)
    except SupervisorNotStarted as error:
        if error.is_running:
            return None
        raise


def _start_producer(dsn: str, home: Path) -> subprocess.Popen[bytes]:
    log = open_log(home / SERVER / "state" / "producer.log")
    try:
        producer = subprocess.Popen(
            [sys.executable, "-m", "pgq_tui.demo.producer"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    if producer.stdin is not None:
        producer.stdin.write(json.dumps({"dsn": dsn, "schema": SCHEMA}).encode() + b"\n")
        producer.stdin.flush()
    return producer
