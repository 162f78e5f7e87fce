"""POST, GET and DELETE of jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from tests.api.rows import announce, bury
from tests.api.server import api_on, faulty_fields, is_problem
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually


class Line(BaseModel):
    sku: str
    count: int


class Invoice(BaseModel):
    customer: int
    lines: list[Line] = []
    due: datetime | None = None


@pytest.fixture
def bills(database: QueueDatabase) -> QueueDatabase:
    announce(database, "bill", Invoice.model_json_schema(), queue="billing", max_attempts=8, timeout="30 s")
    return database


def test_a_job_is_added_and_can_be_looked_up(client: httpx.Client, database: QueueDatabase) -> None:
    body = {"type": "mail", "data": {"to": "a@example.org"}, "queue": "mails", "priority": 7, "max_attempts": 3}

    added = client.post("/jobs", json=body)

    assert added.status_code == 201
    job_id = added.json()["id"]
    assert added.json() == {"id": job_id, "created": True, "url": f"/jobs/{job_id}"}
    assert added.headers["location"] == f"/jobs/{job_id}"
    row = database.job(job_id)
    assert row is not None
    assert (row["queue"], row["priority"], row["max_attempts"]) == ("mails", 7, 3)
    assert row["payload"] == {"type": "mail", "data": {"to": "a@example.org"}}
    found = client.get(f"/jobs/{job_id}").json()
    assert (found["state"], found["data"], found["attempts"]) == ("pending", {"to": "a@example.org"}, 0)


def test_what_is_left_out_comes_from_what_workers_announced(client: httpx.Client, bills: QueueDatabase) -> None:
    job_id = client.post("/jobs", json={"type": "bill", "data": {"customer": 1}}).json()["id"]

    row = bills.job(job_id)
    assert row is not None
    assert (row["queue"], row["max_attempts"], row["timeout"]) == ("billing", 8, timedelta(seconds=30))


def test_data_that_does_not_fit_the_model_is_refused_field_by_field(client: httpx.Client, bills: QueueDatabase) -> None:
    data = {"lines": [{"sku": "a", "count": 1}, {"sku": 5, "count": "many"}], "due": "tomorrow"}

    refused = client.post("/jobs", json={"type": "bill", "data": data})

    assert sorted(faulty_fields(refused)) == ["data.customer", "data.due", "data.lines[1].count", "data.lines[1].sku"]
    assert "many" not in refused.text
    assert bills.value("SELECT count(*) FROM jobs") == 0


def test_a_large_body_is_judged_by_the_model_as_well(client: httpx.Client, bills: QueueDatabase) -> None:
    lines: list[dict[str, Any]] = [{"sku": "x" * 20, "count": n} for n in range(2000)]
    good = client.post("/jobs", json={"type": "bill", "data": {"customer": 1, "lines": lines}})
    bad = client.post("/jobs", json={"type": "bill", "data": {"customer": 1, "lines": [*lines, {}]}})

    assert good.status_code == 201
    assert sorted(faulty_fields(bad)) == ["data.lines[2000].count", "data.lines[2000].sku"]


def test_a_model_that_nobody_can_use_lets_the_job_in_for_the_worker_to_judge(
    client: httpx.Client, database: QueueDatabase
) -> None:
    for number, model in enumerate(({"type": 7}, {"$ref": "#"}, {"$ref": "http://127.0.0.1:1/x"}, ["no", "schema"])):
        announce(database, f"odd-{number}", model)

        assert client.post("/jobs", json={"type": f"odd-{number}", "data": {}}).status_code == 201


def test_an_unknown_type_is_refused_with_the_nearest_names_once_any_was_announced(
    client: httpx.Client, bills: QueueDatabase
) -> None:
    refused = client.post("/jobs", json={"type": "bil"})

    assert faulty_fields(refused) == ["type"]
    assert "'bill'" in refused.json()["detail"]
    assert bills.value("SELECT count(*) FROM jobs") == 0


def test_any_type_is_accepted_while_no_worker_has_ever_run(client: httpx.Client, database: QueueDatabase) -> None:
    assert client.post("/jobs", json={"type": "anything"}).status_code == 201


def test_the_same_key_answers_the_same_job(client: httpx.Client, database: QueueDatabase) -> None:
    body = {"type": "mail", "data": {"b": [1, 2.5, None], "a": "é"}, "idempotency_key": "welcome-1"}
    first = client.post("/jobs", json=body)
    # Compared by content, not by bytes: other spaces, another order.
    text = '{"idempotency_key" : "welcome-1","data":{"a":"\\u00e9",  "b":[1,2.5,null]},"type":"mail"}'
    again = client.post("/jobs", content=text, headers={"Content-Type": "application/json; charset=utf-8"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "created": False}


def test_a_key_with_another_payload_or_queue_is_a_conflict_that_names_the_job(
    client: httpx.Client, database: QueueDatabase
) -> None:
    body: dict[str, Any] = {"type": "mail", "data": {"n": 1}, "idempotency_key": "k"}
    job_id = client.post("/jobs", json=body).json()["id"]

    for changed in ({"data": {"n": 2}}, {"type": "other"}, {"queue": "elsewhere"}):
        conflict = client.post("/jobs", json={**body, **changed})
        assert is_problem(conflict, 409)
        assert (conflict.json()["type"], conflict.json()["job_id"]) == ("key-conflict", job_id)


def test_a_key_stays_taken_after_its_job_has_ended(client: httpx.Client, database: QueueDatabase) -> None:
    body = {"type": "mail", "idempotency_key": "k"}
    job_id = client.post("/jobs", json=body).json()["id"]
    client.delete(f"/jobs/{job_id}")

    again = client.post("/jobs", json=body)

    assert (again.status_code, again.json()["id"]) == (200, job_id)


def test_a_job_for_later_says_when(client: httpx.Client, database: QueueDatabase) -> None:
    at = datetime.now(UTC) + timedelta(days=2)
    by_time = client.post("/jobs", json={"type": "a", "scheduled_at": at.isoformat()}).json()["id"]
    by_delay = client.post("/jobs", json={"type": "a", "delay": 90.5}).json()["id"]

    assert client.get(f"/jobs/{by_time}").json()["state"] == "scheduled"
    assert database.value("SELECT not_before FROM jobs WHERE id = %s", by_time) == at
    wait = database.value(
        "SELECT extract(epoch FROM not_before - created_at)::float8 FROM jobs WHERE id = %s", by_delay
    )
    assert wait == pytest.approx(90.5, abs=0.5)


def test_a_job_is_found_in_every_state(client: httpx.Client, database: QueueDatabase) -> None:
    scheduled = database.put("a", not_before=datetime.now(UTC) + timedelta(hours=1))
    letter = bury(database, "a", {"x": 1})
    dead = database.value("SELECT original_job_id FROM dead_letter_jobs WHERE id = %s", letter)
    cancelled = database.put("a")
    client.delete(f"/jobs/{cancelled}")

    states = {job: client.get(f"/jobs/{job}").json() for job in (scheduled, dead, cancelled)}

    assert [found["state"] for found in states.values()] == ["scheduled", "dead", "cancelled"]
    assert states[dead]["dead_letter"]["id"] == letter
    assert states[dead]["runs"][0]["outcome"] == "dead"
    follow_up = client.post(f"/dead-jobs/{letter}/requeue").json()["job_id"]
    assert client.get(f"/jobs/{dead}").json()["follow_up"] == follow_up
    assert client.get(f"/jobs/{follow_up}").json()["replayed_from"] == letter


def test_secrets_are_masked_and_whole_numbers_stay_whole(client: httpx.Client, database: QueueDatabase) -> None:
    job_id = database.put("a", {"user": "ann", "apiKey": "k-1", "deep": [{"db_password": {"a": 1}}], "n": 2**70})

    found = client.get(f"/jobs/{job_id}")

    assert json.loads(found.text)["data"] == {
        "user": "ann",
        "apiKey": "•••",
        "deep": [{"db_password": "•••"}],
        "n": 2**70,
    }


def test_a_payload_that_cannot_be_read_leaves_the_rest_readable(client: httpx.Client, database: QueueDatabase) -> None:
    deep = "[" * 3000 + "]" * 3000
    job_id = database.value(
        "INSERT INTO jobs (payload) VALUES (jsonb_build_object('type', 'a', 'data', %s::jsonb)) RETURNING id", deep
    )

    found = client.get(f"/jobs/{job_id}").json()

    assert (found["state"], found["type"], found["data"]) == ("pending", "a", None)


def test_an_unknown_job_is_not_found(client: httpx.Client, database: QueueDatabase) -> None:
    assert is_problem(client.get("/jobs/999999"), 404)
    assert is_problem(client.delete("/jobs/999999"), 404)
    assert database.value("SELECT count(*) FROM operations") == 0


ODD_IDS = [
    "0",
    "-1",
    "x",
    "1.5",
    "1.0",
    "+1",
    "1_0",
    "%d9%a1",
    "%201",
    "9223372036854775808",
    "1" * 5000,
    "%00",
    "1%0a",
]


@pytest.mark.parametrize("name", ODD_IDS)
def test_an_id_that_is_none_is_refused(client: httpx.Client, name: str) -> None:
    assert is_problem(client.get(f"/jobs/{name}"), 422)


def test_cancelling_ends_a_job_asks_a_running_one_and_leaves_an_ended_one(
    client: httpx.Client, database: QueueDatabase
) -> None:
    idle, running = database.put("a"), database.put("a")
    database.run(
        "UPDATE jobs SET locked_by = 'w', locked_at = now(), claim_token = nextval('claim_token_seq') WHERE id = %s",
        running,
    )

    gone, asked, again = (
        client.delete(f"/jobs/{idle}"),
        client.delete(f"/jobs/{running}"),
        client.delete(f"/jobs/{idle}"),
    )

    assert (gone.status_code, gone.json()["answer"], gone.json()["state"]) == (200, "cancelled", "cancelled")
    assert (asked.status_code, asked.json()["answer"]) == (202, "requested")
    assert (again.status_code, again.json()["answer"], again.json()["operation_id"]) == (200, "ended", None)
    audit = database.all("SELECT operator, action FROM operations ORDER BY id")
    assert audit == [{"operator": "ops@test", "action": "cancel"}] * 2


def test_payloads_are_never_logged(tmp_path: Path, api_dsn: str, database: QueueDatabase) -> None:
    """Neither of jobs that are taken, nor of those that are refused, nor at the most talkative level."""
    announce(database, "mail", {"type": "object", "required": ["to"], "additionalProperties": {"type": "integer"}})
    secret = "open sesame"
    bodies: list[dict[str, object]] = [
        {"type": "mail", "data": {"to": 1}, "idempotency_key": "k"},
        {"type": "mail", "data": {"to": 2}, "idempotency_key": "k"},
        {"type": "mail", "data": {"to": secret}},
        {"type": "mail", "data": secret, "priority": secret},
        {"type": "mail", "data": {"to": 3, "secret": "\x00" + secret}},
    ]
    with api_on(api_dsn, tmp_path, PGQ_LOG_LEVEL="debug") as server:
        answers = [httpx.post(f"{server.url}/jobs", verify=False, json=body, timeout=30) for body in bodies]
        told = eventually(lambda: server.events("http_request")[-len(bodies) :])

    assert [answer.status_code for answer in answers] == [201, 409, 422, 422, 422]
    assert told
    assert secret not in server.log.read_text(errors="replace")
    assert not any(secret in answer.text for answer in answers)
