"""The API behind PgBouncer in transaction mode works as it is: without session settings and prepared statements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.rows import announce, bury
from tests.api.server import ApiProcess, api_on
from tests.support.pooler import pooler_before
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually

pytestmark = pytest.mark.pooler


@pytest.fixture(scope="module")
def pooled(api_dsn: str, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with pooler_before(api_dsn, home) as address, api_on(address, tmp_path_factory.mktemp("api")) as server:
        yield server


async def test_many_clients_at_once_meet_no_fault(pooled: ApiProcess, database: QueueDatabase) -> None:
    announce(database, "mail", {"type": "object", "required": ["to"]})
    async with httpx.AsyncClient(verify=False, base_url=pooled.url, timeout=60) as client:
        added = await asyncio.gather(
            *(client.post("/jobs", json={"type": "mail", "data": {"to": str(n)}}) for n in range(150)),
            *(
                client.post("/jobs", json={"type": "mail", "data": {"to": "k"}, "idempotency_key": f"k{n % 10}"})
                for n in range(50)
            ),
        )
        found = await asyncio.gather(*(client.get(answer.json()["url"]) for answer in added[:60]))

    assert {answer.status_code for answer in added} == {200, 201}
    assert {answer.status_code for answer in found} == {200}
    assert database.value("SELECT count(*) FROM jobs") == 160


def test_dead_letters_queues_and_metrics_work_too(pooled: ApiProcess, database: QueueDatabase) -> None:
    letters = [bury(database, queue="mails") for _ in range(5)]
    with httpx.Client(verify=False, base_url=pooled.url, timeout=30) as client:
        preview = client.post("/dead-jobs/requeue", json={"filter": {"queue": "mails"}, "dry_run": True}).json()
        assert preview["preview"]["count"] == 5
        done = client.post("/dead-jobs/requeue", json={"selection": preview["preview"]["selection"]}).json()
        assert done["result"]["done"] == 5
        assert client.get(f"/dead-jobs/{letters[0]}").json()["resolution"] == "replayed"
        assert client.post("/queues/mails/pause").status_code == 200
        eventually(lambda: 'queue_paused{queue="mails"} 1.0' in client.get("/metrics").text, timeout=40, interval=0.3)
