"""Many clients, the same keys, hang-ups in between: never two live jobs of one key, and every answer is true."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from psycopg.conninfo import make_conninfo

from pgq_core.migrate import migrate
from tests.api.server import ApiProcess
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase
from tests.torture.server import TortureServer

CLIENTS = 64


class Target:
    """Where the API is right now: it may be stopped and started again under the clients."""

    def __init__(self, api: ApiProcess) -> None:
        self.url = api.url
        self.statuses: set[int] = set()

    async def post(self, client: httpx.AsyncClient, key: str) -> httpx.Response:
        """Asks again for as long as the server cannot serve, as a producer would."""
        while True:
            try:
                answer = await client.post(f"{self.url}/jobs", json=body_of(key))
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            self.statuses.add(answer.status_code)
            if answer.status_code != 503:
                return answer
            await asyncio.sleep(0.05)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=False, timeout=30, limits=httpx.Limits(max_connections=CLIENTS)) as opened:
        yield opened


async def test_64_clients_with_the_same_keys_make_one_job_per_key(
    client: httpx.AsyncClient, api: ApiProcess, database: QueueDatabase
) -> None:
    """While their connections to the database are ended, too."""
    firing = asyncio.create_task(fire(Target(api), client, keys=100))
    while not firing.done():
        await asyncio.to_thread(end_sessions, database)
        await asyncio.wait({firing}, timeout=1.0)
    await firing

    assert_one_job_per_key(database, 100)


@pytest.mark.torture
@pytest.mark.timeout(900)
async def test_1000_keys_survive_restarts_of_the_api_and_crashes_of_the_database(
    client: httpx.AsyncClient, home: Path, tmp_path: Path
) -> None:
    server = TortureServer(home, "keys")
    dsn = await asyncio.to_thread(migrated, server)
    first = await asyncio.to_thread(ApiProcess, dsn, tmp_path / "first.log")
    target = Target(first)
    servers = [first]

    async def disturb() -> None:
        for number in range(4):
            await asyncio.sleep(1.5)
            await asyncio.to_thread(server.crash)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.start)
            await asyncio.sleep(1.5)
            following = await asyncio.to_thread(ApiProcess, dsn, tmp_path / f"next-{number}.log")
            target.url = following.url
            assert await asyncio.to_thread(servers[-1].stop, timeout=60) == 0
            servers.append(following)

    disturbing = asyncio.create_task(disturb())
    try:
        await fire(target, client, keys=1000, until=disturbing)
        await disturbing
        database = QueueDatabase(dsn)
        assert_one_job_per_key(database, 1000)
        database.close()
        assert [event for api in servers for event in api.events("http_request_failed")] == []
    finally:
        disturbing.cancel()
        for api in servers:
            api.kill()
        await asyncio.to_thread(server.close)


def migrated(server: TortureServer) -> str:
    migrate(server.url, schema=SCHEMA)
    return make_conninfo(server.url, options=f"-c search_path={SCHEMA},public")


def end_sessions(database: QueueDatabase) -> None:
    database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pgq api%%'")


async def fire(
    target: Target, client: httpx.AsyncClient, *, keys: int, until: asyncio.Task[None] | None = None
) -> None:
    """Two rounds over every key by different clients, some of which hang up in the middle of their request.

    `until`: the work is spread out until this has ended.
    """
    answers: dict[str, list[tuple[int, int]]] = defaultdict(list)
    rng = random.Random(7)
    work = [f"key-{number}" for number in range(keys)] * 2
    rng.shuffle(work)

    async def produce() -> None:
        while work:
            key = work.pop()
            if until is not None and not until.done():
                await asyncio.sleep(rng.uniform(0.2, 0.6))
            if rng.random() < 0.1:
                await hang_up(target.url, key)
            answer = await target.post(client, key)
            answers[key].append((answer.status_code, answer.json()["id"]))

    await asyncio.gather(*(produce() for _ in range(CLIENTS)))
    assert target.statuses <= {200, 201, 503}
    for given in answers.values():
        assert len({job for _, job in given}) == 1
        # Twice 200: made by a request whose answer nobody waited for.
        assert sorted(status for status, _ in given) in ([200, 200], [200, 201])


def assert_one_job_per_key(database: QueueDatabase, keys: int) -> None:
    assert database.value("SELECT count(*) FROM jobs") == keys
    assert database.value("SELECT count(DISTINCT idempotency_key) FROM jobs") == keys


async def test_a_key_whose_holder_vanishes_is_answered_all_the_same(
    client: httpx.AsyncClient, api: ApiProcess, database: QueueDatabase
) -> None:
    done = asyncio.Event()
    statuses: set[int] = set()

    async def post() -> None:
        for _ in range(25):
            answer = await client.post(f"{api.url}/jobs", json=body_of("one key"))
            statuses.add(answer.status_code)
            assert answer.json()["id"] > 0

    async def end_holders() -> None:
        while not done.is_set():
            await asyncio.to_thread(database.run, "DELETE FROM jobs")
            await asyncio.to_thread(database.run, "UPDATE job_keys SET expires_at = now() WHERE expires_at IS NOT NULL")

    enders = asyncio.create_task(end_holders())
    await asyncio.gather(*(post() for _ in range(8)))
    done.set()
    await enders

    assert statuses <= {200, 201}
    assert database.value("SELECT count(*) FROM jobs") <= 1


def body_of(key: str) -> dict[str, object]:
    return {"type": "mail", "data": {"key": key}, "idempotency_key": key}


async def hang_up(url: str, key: str) -> None:
    """Sends a request, whole or half, and leaves without waiting for the answer."""
    where = urlsplit(url)
    text = json.dumps(body_of(key)).encode()
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    try:
        _, writer = await asyncio.open_connection(where.hostname, where.port)
    except OSError:
        return  # the server is just being replaced
    writer.write(head.encode() + text[: random.choice((len(text), len(text) // 2))])
    await writer.drain()
    writer.transport.abort()
