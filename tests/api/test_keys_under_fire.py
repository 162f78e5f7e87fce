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

from tests.api.server import ApiProcess
from tests.support.queue_database import QueueDatabase

CLIENTS = 64


class Target:
    """Where the API is right now: it may be stopped and started again under the clients."""

    def __init__(self, api: ApiProcess) -> None:
        self.url = api.url

    async def post(self, client: httpx.AsyncClient, key: str) -> httpx.Response:
        """Asks again for as long as the server cannot serve, as a producer would."""
        while True:
            try:
                answer = await client.post(f"{self.url}/jobs", json=body_of(key))
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
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
    await fire(Target(api), client, keys=150)

    assert_one_job_per_key(database, 150)


@pytest.mark.torture
async def test_1000_keys_survive_restarts_of_the_api_and_lost_connections(
    client: httpx.AsyncClient, api_dsn: str, database: QueueDatabase, tmp_path: Path
) -> None:
    first = ApiProcess(api_dsn, tmp_path / "first.log")
    target = Target(first)
    servers = [first]

    async def disturb() -> None:
        for number in range(4):
            await asyncio.sleep(2)
            await asyncio.to_thread(
                database.run,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pgq api%%'",
            )
            following = await asyncio.to_thread(ApiProcess, api_dsn, tmp_path / f"next-{number}.log")
            target.url = following.url
            assert await asyncio.to_thread(servers[-1].stop) == 0
            servers.append(following)

    disturbing = asyncio.create_task(disturb())
    try:
        await fire(target, client, keys=1000)
        await disturbing
        assert_one_job_per_key(database, 1000)
        assert [event for server in servers for event in server.events("http_request_failed")] == []
    finally:
        for server in servers:
            server.kill()


async def fire(target: Target, client: httpx.AsyncClient, *, keys: int) -> None:
    """Two rounds over every key by different clients, some of which hang up in the middle of their request."""
    answers: dict[str, list[tuple[int, int]]] = defaultdict(list)
    rng = random.Random(7)
    work = [f"key-{number}" for number in range(keys)] * 2
    rng.shuffle(work)

    async def produce() -> None:
        while work:
            key = work.pop()
            if rng.random() < 0.1:
                await hang_up(target.url, key)
            answer = await target.post(client, key)
            answers[key].append((answer.status_code, answer.json()["id"]))

    await asyncio.gather(*(produce() for _ in range(CLIENTS)))
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
