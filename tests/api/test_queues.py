"""Queues over HTTP: how they stand, pause, resume; and the metrics of this server."""

from __future__ import annotations

import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.rows import bury
from tests.api.server import is_problem
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually


def named(client: httpx.Client) -> dict[str, dict[str, object]]:
    return {queue["name"]: queue for queue in client.get("/queues").json()["queues"]}


def test_queues_show_what_lies_in_them(client: httpx.Client, database: QueueDatabase) -> None:
    database.put("a", queue="mails")
    bury(database, queue="bills")

    queues = eventually(lambda: found if len(found := named(client)) == 2 else None)

    assert queues["mails"]["pending"] == {"value": 1, "exact": True}
    assert queues["mails"]["oldest_pending_at"] is not None
    assert queues["bills"]["dead"] == {"value": 1, "exact": True}


@pytest.mark.parametrize("name", ["mails", "a/b", "ж 1", "pause", "x/pause"])
def test_a_queue_is_paused_and_resumed(client: httpx.Client, database: QueueDatabase, name: str) -> None:
    paused = client.post(f"/queues/{name}/pause", json={"reason": "maintenance"})

    assert (paused.status_code, paused.json()["name"], paused.json()["paused"]) == (200, name, True)
    row = database.one("SELECT * FROM queues")
    assert (row["name"], row["paused"], row["paused_by"], row["pause_reason"]) == (
        name,
        True,
        "ops@test",
        "maintenance",
    )
    assert client.post(f"/queues/{name}/resume").json()["paused"] is False
    assert is_problem(client.post(f"/queues/{name}/resume"), 409)
    actions = database.all("SELECT action FROM operations ORDER BY id")
    assert [row["action"] for row in actions] == ["pause", "resume"]


@pytest.mark.parametrize("name", ["mails", "a/b", "audit"])
def test_a_queue_is_told_what_to_write_down(client: httpx.Client, database: QueueDatabase, name: str) -> None:
    told = client.post(f"/queues/{name}/audit", json={"audit": "sample", "share": 0.2, "reason": "too many rows"})

    operation = database.one("SELECT id, operator, action, target, reason FROM operations")
    wanted = {"name": name, "audit": "sample", "audit_sample": 0.2, "operation_id": operation["id"]}
    assert (told.status_code, told.json()) == (200, wanted)
    assert list(operation.values())[1:] == ["ops@test", "set_audit", f"queue {name}", "too many rows"]
    eventually(lambda: named(client).get(name, {}).get("audit_sample") == 0.2, interval=0.3)
    assert named(client)[name]["audit"] == "sample"
    assert client.post(f"/queues/{name}/audit", json={"audit": "failures"}).json()["audit_sample"] is None
    assert client.post(f"/operations/{operation['id']}/undo").status_code == 409
    for wrong in ({}, {"audit": "some"}, {"audit": "all", "share": 0.5}, {"audit": "sample", "share": 0}):
        assert is_problem(client.post(f"/queues/{name}/audit", json=wrong), 422)


@pytest.mark.parametrize("name", ["a,b", "%00", "x" * 201, "%20"])
def test_a_name_that_no_queue_can_have_is_refused(client: httpx.Client, database: QueueDatabase, name: str) -> None:
    assert is_problem(client.post(f"/queues/{name}/pause"), 422)


def test_metrics_are_served_from_memory(client: httpx.Client, database: QueueDatabase) -> None:
    database.put("a", queue="mails")

    def depth() -> float | None:
        answer = client.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                if sample.name == "jobs_depth" and sample.labels == {"queue": "mails", "status": "pending"}:
                    return float(sample.value)
        return None

    assert eventually(depth, interval=0.3) == 1.0


def test_requests_are_counted_by_route_and_not_by_address(client: httpx.Client, database: QueueDatabase) -> None:
    for number in range(1, 4):
        client.get(f"/jobs/{number}")
    client.get(f"/{time.monotonic()}")

    text = client.get("/metrics").text

    assert 'route="/jobs/{job_id}",status="404"' in text
    assert 'route="unknown",status="404"' in text
