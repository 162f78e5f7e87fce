"""Behind PgBouncer in transaction mode: every statement may meet another server session."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, JobQueue
from pgq_core.errors import InvalidSettings
from tests.queue.rows import value
from tests.support.waiting import eventually

pytestmark = pytest.mark.pooler


@pytest.fixture
def pooled_dsn(dsn: str, tmp_path: Path) -> Iterator[str]:
    """The test's database through a pooler with three server sessions."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = conninfo_to_dict(dsn)
    is_root = os.getuid() == 0
    if is_root and str(given["host"]).startswith("/"):
        pytest.skip(
            "pgbouncer does not run as root, and nobody else may enter the socket's directory: set PGQ_TEST_DSN"
        )
    target = " ".join(
        f"{name}={given[name]}" for name in ("host", "port", "dbname", "user", "password") if given.get(name)
    )
    settings = tmp_path / "pgbouncer.ini"
    settings.write_text(
        dedent(
            f"""
            [databases]
            pooled = {target}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = 3
            """
        )
    )
    user = ["-u", "nobody"] if is_root else []
    for directory in (tmp_path, *tmp_path.parents[:-2]):  # root's temporary directories are closed to others
        directory.chmod(directory.stat().st_mode | 0o011)
    settings.chmod(0o644)
    with subprocess.Popen([program, "-q", *user, str(settings)]) as pooler:
        pooled = f"host=127.0.0.1 port={port} dbname=pooled user={given['user']}"
        try:
            eventually(lambda: _answers(pooled))
            yield pooled
        finally:
            pooler.terminate()


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_session_settings_behind_a_pooler_are_refused_with_the_remedy(pooled_dsn: str) -> None:
    with JobQueue(pooled_dsn) as queue, pytest.raises(InvalidSettings, match="pass prepare=False"):
        queue.enqueue("t")


def test_many_threads_enqueue_claim_and_finish(pooled_dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(pooled_dsn, prepare=False) as queue, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda n: queue.enqueue("t", n % 20, idempotency_key=f"k{n % 20}"), range(200)))
        queue.enqueue_many([("t", n) for n in range(100)])

        def finish_all(_: int) -> None:
            while jobs := queue.claim("default", 7):
                for job in jobs:
                    queue.complete(job, job.data)

        list(threads.map(finish_all, range(4)))

        assert sum(answer.created for answer in answers) == 20
        assert queue.result(answers[0].id) == 0
    assert value(conn, "SELECT count(*) FROM job_runs") == 120


async def test_the_asynchronous_queue_works_too(pooled_dsn: str) -> None:
    async with AsyncJobQueue(pooled_dsn, prepare=False) as queue:
        job = await queue.enqueue("t", idempotency_key="k")
        await queue.complete((await queue.claim())[0], "done")

        assert await queue.result(job.id) == "done"
