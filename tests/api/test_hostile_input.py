"""Bodies and addresses that mean harm, or nothing: a 4xx with valid JSON each time, and nothing is inserted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from pgq_core.api import bodies
from tests.api.conftest import empty
from tests.api.server import JSON_HEADERS, in_process, is_problem
from tests.support.queue_database import QueueDatabase


@pytest.fixture(scope="module")
def database(api_dsn: str) -> Iterator[QueueDatabase]:
    """Not emptied after each test: these tests are many, and most of them insert nothing."""
    opened = QueueDatabase(api_dsn)
    yield opened
    empty(opened)
    opened.close()


def jobs(database: QueueDatabase) -> object:
    return database.value("SELECT count(*) FROM jobs")


JOB = '{"type": "a", '
BODIES = {
    "NaN": JOB + '"data": {"x": NaN}}',
    "Infinity": JOB + '"data": {"x": -Infinity}}',
    "1e999": JOB + '"data": {"x": 1e999}}',
    "priority NaN": JOB + '"priority": NaN}',
    "priority 1e400": JOB + '"priority": 1e400}',
    "priority text": JOB + '"priority": "7"}',
    "priority half": JOB + '"priority": 1.5}',
    "priority true": JOB + '"priority": true}',
    "priority 2^31": JOB + '"priority": 2147483648}',
    "priority -2^63": JOB + '"priority": -9223372036854775808}',
    "priority huge": JOB + f'"priority": {"9" * 4000}}}',
    "scheduled Infinity": JOB + '"scheduled_at": Infinity}',
    "scheduled naive": JOB + '"scheduled_at": "2030-01-01T00:00:00"}',
    "scheduled year 0": JOB + '"scheduled_at": "0000-01-01T00:00:00Z"}',
    "scheduled year 10000": JOB + '"scheduled_at": "10000-01-01T00:00:00Z"}',
    "scheduled year 9999": JOB + '"scheduled_at": "9999-12-31T23:59:59Z"}',
    "scheduled text": JOB + '"scheduled_at": "infinity"}',
    "scheduled number": JOB + '"scheduled_at": 1e18}',
    "scheduled seconds": JOB + '"scheduled_at": "1700000000"}',
    "scheduled no day": JOB + '"scheduled_at": "2024-02-30T00:00:00Z"}',
    "scheduled leap second": JOB + '"scheduled_at": "2016-12-31T23:59:60Z"}',
    "delay negative": JOB + '"delay": -1}',
    "delay 1e18": JOB + '"delay": 1e18}',
    "delay NaN": JOB + '"delay": NaN}',
    "delay and time": JOB + '"delay": 1, "scheduled_at": "2030-01-01T00:00:00Z"}',
    "attempts 0": JOB + '"max_attempts": 0}',
    "attempts -1": JOB + '"max_attempts": -1}',
    "attempts 10^9": JOB + '"max_attempts": 1000000000}',
    "timeout negative": JOB + '"timeout": -0.1}',
    "NUL in data": JOB + '"data": {"a": "x\\u0000y"}}',
    "NUL in a key of data": JOB + '"data": {"a\\u0000": 1}}',
    "NUL in the queue": JOB + '"queue": "a\\u0000b"}',
    "NUL in the key": JOB + '"idempotency_key": "a\\u0000b"}',
    "NUL in the type": '{"type": "a\\u0000b"}',
    "surrogate in data": JOB + '"data": "\\ud800"}',
    "surrogate in the type": '{"type": "\\udfff"}',
    "surrogate in an unknown field": JOB + '"\\ud800": 1}',
    "queue empty": JOB + '"queue": ""}',
    "queue long": JOB + f'"queue": "{"q" * 300}"}}',
    "queue newline": JOB + '"queue": "a\\nb"}',
    "queue comma": JOB + '"queue": "a,b"}',
    "type empty": '{"type": ""}',
    "type blank": '{"type": " "}',
    "type number": '{"type": 5}',
    "type missing": "{}",
    "key empty": JOB + '"idempotency_key": ""}',
    "key long": JOB + f'"idempotency_key": "{"k" * 501}"}}',
    "unknown field": JOB + '"run_at": 1}',
    "own status": JOB + '"status": "running"}',
    "array": "[]",
    "null": "null",
    "text": '"a"',
    "nothing": "",
    "no JSON": "{",
    "two values": "{}{}",
    "deep": JOB + f'"data": {"[" * 300}{"]" * 300}}}',
    "very deep": "[" * 100_000,
    "single quotes": "{'type': 'a'}",
    "digits": JOB + f'"data": {"9" * 10_000}}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_hostile_body_is_refused_and_nothing_is_inserted(
    client: httpx.Client, database: QueueDatabase, body: str
) -> None:
    before = jobs(database)

    assert is_problem(client.post("/jobs", content=body, headers=JSON_HEADERS), 422)
    assert jobs(database) == before


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"type": "\xed\xa0\x80"}', b'\xef\xbb\xbf{"type": "a"}'])
def test_a_body_that_is_no_utf8_is_refused(client: httpx.Client, database: QueueDatabase, body: bytes) -> None:
    assert is_problem(client.post("/jobs", content=body, headers=JSON_HEADERS), 422)


ODD = ["ж", "a/b", "👍", "a'b\"c", "<b>", "x" * 200, "a b", "\u202eabc", "%s", "{}", "null"]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_odd_names_that_are_accepted_arrive_as_they_are(
    client: httpx.Client, database: QueueDatabase, name: str
) -> None:
    body = {"type": name, "queue": name, "idempotency_key": name, "data": {name: name}}

    added = client.post("/jobs", json=body)

    assert added.status_code == 201
    found = client.get(added.json()["url"]).json()
    assert (found["type"], found["queue"], found["idempotency_key"]) == (name, name, name)
    assert found["data"] == {name: name}


def test_numbers_arrive_as_they_were_sent(client: httpx.Client, database: QueueDatabase) -> None:
    text = '{"a": 1.0, "b": 1, "c": 1e22, "d": 123456789012345678901234567890, "e": 0.1, "f": -0.0, "g": 1e-300}'

    job_id = client.post("/jobs", content=JOB + f'"data": {text}}}', headers=JSON_HEADERS).json()["id"]

    assert client.get(f"/jobs/{job_id}").json()["data"] == json.loads(text)


@pytest.mark.parametrize(
    "query",
    [
        "queue=%00",
        "text=a%00b",
        "queue=",
        "reason=none",
        "resolution=gone",
        "before=0",
        "before=x",
        "limit=0",
        "limit=1e9",
        "limit=%F0%9F",
        "total=maybe",
        "died_after=yesterday",
        "died_after=2030-01-01",
        "died_before=0.5",
        "unknown=1",
    ],
)
def test_a_hostile_query_is_refused(client: httpx.Client, query: str) -> None:
    assert is_problem(client.get(f"/dead-jobs?{query}"), 422)


def test_text_that_is_no_utf8_in_a_query_finds_nothing(client: httpx.Client, database: QueueDatabase) -> None:
    assert client.get("/dead-jobs?queue=%FF%FE").json()["items"] == []


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_body_of_another_kind_is_refused(client: httpx.Client, database: QueueDatabase, media_type: str) -> None:
    refused = client.post("/jobs", content='{"type": "a"}', headers={"Content-Type": media_type})

    assert is_problem(refused, 415)


def test_a_compressed_body_is_refused(client: httpx.Client, database: QueueDatabase) -> None:
    headers = {**JSON_HEADERS, "Content-Encoding": "gzip"}

    assert is_problem(client.post("/jobs", content=b"\x1f\x8b", headers=headers), 415)


async def test_a_body_that_does_not_arrive_is_not_waited_for(api_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_SLOWEST_BODY", 0.1)

    async def halting() -> AsyncIterator[bytes]:
        yield b'{"type": '
        await asyncio.Event().wait()

    async with in_process(api_dsn) as client:
        refused = await client.post("/jobs", content=halting(), headers=JSON_HEADERS)

    assert is_problem(refused, 408)
    assert refused.json()["type"] == "too-slow"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nothing"), ("POST", "/"), ("GET", "/jobs/"), ("GET", "//jobs/1")]
)
def test_a_path_that_is_none_is_a_problem_of_the_same_form(client: httpx.Client, method: str, path: str) -> None:
    assert client.request(method, path).status_code in (404, 405)


def test_another_method_names_those_that_work(client: httpx.Client) -> None:
    refused = client.put("/jobs/1")

    assert is_problem(refused, 405)
    assert refused.headers["allow"] == "DELETE, GET, HEAD"


@pytest.mark.parametrize("path", ["/healthz", "/dead-jobs", "/jobs/0", "/nothing", "/metrics", "/ui/dead", "/jobs"])
def test_head_is_answered_as_get_is_without_the_body(client: httpx.Client, path: str) -> None:
    whole, head = client.get(path), client.head(path)

    assert head.status_code == whole.status_code
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.content == b""


def test_complaints_are_in_words_of_ours(client: httpx.Client) -> None:
    refused = client.post("/jobs", json={"type": "a", "scheduled_at": "soon"})
    unfit = client.post("/queues/a/pause", json={"reason": "a\0b"})

    assert refused.json()["detail"] == "scheduled_at: has to be an ISO 8601 time with an offset"
    assert unfit.json()["detail"] == "reason: contains the character U+0000"
