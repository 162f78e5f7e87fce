"""The database is slow, locked or away; the server is stopped: bounded answers, and no half of anything."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from pgq_core.api.connections import Connections
from tests.api.server import ApiProcess, api_on, is_problem
from tests.console.network import Network
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually, eventually_async

TIMEOUT = 3.0


@pytest.fixture
async def network(api_dsn: str) -> AsyncIterator[Network]:
    network = Network(api_dsn)
    await network.open()
    yield network
    await network.close()


@pytest.fixture
def server(api_dsn: str, tmp_path: Path) -> Iterator[ApiProcess]:
    with api_on(api_dsn, tmp_path, PGQ_API_TIMEOUT=str(TIMEOUT)) as started:
        yield started


@pytest.fixture
def patient_server(api_dsn: str, tmp_path: Path) -> Iterator[ApiProcess]:
    """What waits for a lock is to get it, however long a busy machine takes to give it back."""
    with api_on(api_dsn, tmp_path, PGQ_API_TIMEOUT="60") as started:
        yield started


@contextlib.asynccontextmanager
async def api_behind(network: Network, directory: Path) -> AsyncIterator[ApiProcess]:
    """Started from a thread: the network is served by this loop."""
    starting = api_on(network.address, directory, ready=False, PGQ_API_TIMEOUT=str(TIMEOUT))
    server = await asyncio.to_thread(starting.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


def body_of(key: str) -> dict[str, object]:
    return {"type": "a", "idempotency_key": key}


async def test_a_locked_table_is_answered_by_503_and_recovered_from_at_once(
    server: ApiProcess, database: QueueDatabase
) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(verify=False, base_url=server.url, timeout=60, limits=limits) as client:
        async with await psycopg.AsyncConnection.connect(database.dsn) as lock:
            await lock.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            posts = [asyncio.create_task(client.post("/jobs", json=body_of(f"k-{n}"))) for n in range(200)]
            alive = await client.get("/healthz")
            await eventually_async(lambda: _is(client, "/readyz", 503), interval=0.1)
            answers = await asyncio.gather(*posts)
            await lock.rollback()

        assert alive.status_code == 200
        assert all(is_problem(answer, 503) and int(answer.headers["retry-after"]) > 0 for answer in answers)
        await eventually_async(lambda: _takes(client, "k-0"), interval=0.1)
        await eventually_async(lambda: _is(client, "/readyz", 200), interval=0.1)
        assert database.value("SELECT count(*) FROM jobs") == 1


async def test_after_a_read_only_server_all_jobs_are_taken_again(server: ApiProcess, database: QueueDatabase) -> None:
    """A session that began before the server took writes again stays read-only: none of those kept is any use."""
    name = Identifier(database.value("SELECT current_database()"))
    setting = SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(verify=False, base_url=server.url, timeout=60, limits=limits) as client:
        with psycopg.connect(database.dsn, autocommit=True) as hand:
            hand.execute(setting.format(name, True))
            try:
                refused = await asyncio.gather(*(client.post("/jobs", json=body_of(f"r-{n}")) for n in range(30)))
            finally:
                hand.execute(setting.format(name, False))

        last: list[int] = []
        await eventually_async(lambda: is_taken(client, last))
        answers = [await client.post("/jobs", json=body_of(f"k-{n}")) for n in range(10)]
        answers += await asyncio.gather(*(client.post("/jobs", json=body_of(f"m-{n}")) for n in range(30)))

    assert all(is_problem(answer, 503) for answer in refused)
    assert last[:-1] == [503] * (len(last) - 1)
    assert [answer.status_code for answer in answers] == [201] * 40


async def is_taken(client: httpx.AsyncClient, statuses: list[int]) -> bool:
    statuses.append((await client.post("/jobs", json=body_of("last"))).status_code)
    return statuses[-1] == 201


async def test_connections_kept_from_a_read_only_server_are_given_up_together(
    api_dsn: str, database: QueueDatabase
) -> None:
    name = Identifier(database.value("SELECT current_database()"))
    setting = SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    connections = Connections(api_dsn, size=6, patience=20, application_name="pgq api")
    with psycopg.connect(database.dsn, autocommit=True) as hand:
        hand.execute(setting.format(name, True))
        try:
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(4):
                    await stack.enter_async_context(connections.connection())
        finally:
            hand.execute(setting.format(name, False))

    async with connections.connection():  # one that a slow request holds meanwhile
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            async with connections.connection() as conn:
                await conn.execute("DELETE FROM jobs")

    for _ in range(2):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(6):
                conn = await stack.enter_async_context(connections.connection())
                await conn.execute("DELETE FROM jobs")
    await connections.close()


async def test_a_database_that_is_away_is_found_again(
    network: Network, tmp_path: Path, database: QueueDatabase
) -> None:
    async with (
        api_behind(network, tmp_path) as server,
        httpx.AsyncClient(verify=False, base_url=server.url, timeout=60) as client,
    ):
        await eventually_async(lambda: _is(client, "/readyz", 200), interval=0.1)
        await eventually_async(lambda: _takes(client, "before"), interval=0.1)

        network.cut()
        for method, path in (("POST", "/jobs"), ("GET", "/jobs/1"), ("GET", "/queues"), ("GET", "/dead-jobs")):
            refused = await client.request(method, path, json=body_of("during") if method == "POST" else None)
            assert is_problem(refused, 503)
        assert (await client.get("/healthz")).status_code == 200
        await eventually_async(lambda: _is(client, "/readyz", 503), interval=0.1)
        assert (await client.get("/metrics")).status_code == 200

        network.mend()
        await eventually_async(lambda: _is(client, "/readyz", 200), interval=0.1)
        await eventually_async(lambda: _takes(client, "during"), interval=0.1)
        assert database.value("SELECT count(*) FROM jobs") == 2


async def test_a_database_that_falls_silent_holds_nobody_up(
    network: Network, tmp_path: Path, database: QueueDatabase
) -> None:
    async with (
        api_behind(network, tmp_path) as server,
        httpx.AsyncClient(verify=False, base_url=server.url, timeout=60) as client,
    ):
        await eventually_async(lambda: _is(client, "/readyz", 200), interval=0.1)
        await client.get("/jobs/1")
        network.swallow()
        answers = await asyncio.gather(
            *(client.get(path) for path in ("/jobs/1", "/jobs/2", "/queues", "/metrics", "/healthz"))
        )

        assert [answer.status_code for answer in answers] == [503, 503, 503, 200, 200]
        network.mend()


def test_a_server_starts_before_its_database(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        closed = f"postgresql://127.0.0.1:{held.getsockname()[1]}/x?connect_timeout=2"
    with api_on(closed, tmp_path, ready=False) as server:
        assert httpx.get(f"{server.url}/healthz", verify=False).status_code == 200
        assert is_problem(httpx.get(f"{server.url}/readyz", verify=False), 503)
        assert is_problem(httpx.post(f"{server.url}/jobs", verify=False, json={"type": "a"}, timeout=60), 503)


def test_sigterm_lets_a_request_end_and_loses_nothing(patient_server: ApiProcess, database: QueueDatabase) -> None:
    """A job is being inserted, held up by a lock, when the server is told to stop."""
    server = patient_server
    answers: list[httpx.Response] = []
    with psycopg.connect(database.dsn) as lock:
        lock.execute("LOCK TABLE jobs IN SHARE MODE")
        post = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{server.url}/jobs", verify=False, json=body_of("k"), timeout=60))
        )
        post.start()
        eventually(lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.events("api_stopping"))
        lock.rollback()
    post.join(60)

    assert server.process.wait(60) == 0
    assert answers[0].status_code == 201
    assert database.job(answers[0].json()["id"]) is not None


def test_an_idle_server_ends_at_once(api_dsn: str, tmp_path: Path, database: QueueDatabase) -> None:
    with api_on(api_dsn, tmp_path) as server, httpx.Client(verify=False, base_url=server.url) as client:
        client.get("/queues")  # and keeps its connection open

        assert server.stop(signal.SIGINT) == 0


def test_who_hangs_up_leaves_no_half_state(patient_server: ApiProcess, database: QueueDatabase) -> None:
    """The insert that waits for a lock goes on when its client is gone, and its connection serves the next one."""
    server = patient_server
    where = urlsplit(server.url)
    text = b'{"type": "a", "idempotency_key": "left"}'
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    with psycopg.connect(database.dsn) as lock:
        lock.execute("LOCK TABLE jobs IN SHARE MODE")
        with socket.create_connection((where.hostname, where.port or 0)) as connection:
            connection.sendall(head.encode() + text)
            eventually(lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        lock.rollback()

    eventually(lambda: database.value("SELECT count(*) FROM jobs") == 1)
    again = httpx.post(f"{server.url}/jobs", verify=False, json={"type": "a", "idempotency_key": "left"})
    assert (again.status_code, again.json()["created"]) == (200, False)


async def _takes(client: httpx.AsyncClient, key: str) -> bool:
    """On a busy machine the first answers after trouble may still be refusals."""
    answer = await client.post("/jobs", json=body_of(key))
    return answer.status_code in (200, 201) or not is_problem(answer, 503)


async def _is(client: httpx.AsyncClient, path: str, status: int) -> bool:
    return (await client.get(path)).status_code == status
