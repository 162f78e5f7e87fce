"""A server that is asked and says nothing: every call gives it up, says so, and the next one finds it back."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator

import psutil
import pytest
from psycopg import Connection
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, JobQueue
from pgq_core.bounded import NoAnswer
from pgq_core.database import connect, connect_sync
from pgq_core.errors import DatabaseUnavailable
from tests.queue.rows import rows
from tests.support.signals import suspend

OURS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pgq queue'"
LIMIT = 2.0
WORDS = r"no answer within 2 s: .*see to it, then repeat"


@contextlib.contextmanager
def suspended(*pids: int) -> Iterator[None]:
    """These sessions' own processes stand still: what is sent to them arrives, and nothing comes back."""
    if not all(psutil.pid_exists(pid) and psutil.Process(pid).name().startswith("postgres") for pid in pids):
        pytest.skip("the server's processes are on another machine")
    try:
        for pid in pids:
            suspend(pid)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def silence(conn: Connection[DictRow]) -> Iterator[None]:
    """Of all sessions that the queue has now."""
    pids = [row["pid"] for row in rows(conn, OURS)]
    assert pids
    with suspended(*pids):
        yield


@pytest.fixture(autouse=True)
def _no_patience_beyond_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgq_core.job_queue.target.SILENCE", 0.0)


@pytest.fixture
def queue(dsn: str) -> Iterator[JobQueue]:
    with JobQueue(dsn, timeout=LIMIT) as queue:
        yield queue


@pytest.fixture
async def async_queue(dsn: str) -> AsyncIterator[AsyncJobQueue]:
    async with AsyncJobQueue(dsn, timeout=LIMIT) as queue:
        yield queue


def test_plain_calls_give_a_silent_server_up(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = queue.enqueue("t")
    with silence(conn), pytest.raises(DatabaseUnavailable, match=WORDS):
        queue.enqueue("t")  # over the short way

    assert queue.get(job.id).state == "pending"
    with silence(conn), pytest.raises(DatabaseUnavailable, match=WORDS):
        queue.get(job.id)  # over a cursor of the driver

    assert queue.enqueue("t").created


async def test_asynchronous_calls_give_a_silent_server_up(
    async_queue: AsyncJobQueue, conn: Connection[DictRow]
) -> None:
    job = await async_queue.enqueue("t")
    with silence(conn), pytest.raises(DatabaseUnavailable, match=WORDS):
        await async_queue.enqueue("t")

    assert (await async_queue.get(job.id)).state == "pending"
    with silence(conn), pytest.raises(DatabaseUnavailable, match=WORDS):
        await async_queue.get(job.id)

    assert (await async_queue.enqueue("t")).created


def test_a_connection_that_got_no_answer_is_closed_also_in_a_transaction(dsn: str) -> None:
    with connect_sync(dsn, application_name="pgq test", answer_within=0.5) as conn:
        conn.execute("BEGIN")
        with suspended(conn.info.backend_pid), pytest.raises(NoAnswer):
            conn.execute("SELECT 1")

        assert conn.closed


async def test_a_slow_answer_within_the_limit_is_waited_for(dsn: str) -> None:
    with connect_sync(dsn, application_name="pgq test", answer_within=30) as conn:
        assert conn.execute("SELECT 1 FROM pg_sleep(0.3)").fetchall() == [(1,)]
    async with await connect(dsn, application_name="pgq test", answer_within=30) as async_conn:
        assert await (await async_conn.execute("SELECT 1 FROM pg_sleep(0.3)")).fetchall() == [(1,)]
