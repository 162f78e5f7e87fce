"""The schema is not there, or is an older one: nothing that a request could help, and no fault of this server."""

from __future__ import annotations

from tests.api.server import in_process, is_problem

REQUESTS = (
    ("POST", "/jobs", {"type": "a"}),
    ("POST", "/jobs", {"type": "a", "idempotency_key": "k"}),
    ("GET", "/jobs/1", None),
    ("DELETE", "/jobs/1", None),
    ("GET", "/dead-jobs", None),
    ("GET", "/dead-jobs/1", None),
    ("GET", "/dead-jobs/groups", None),
    ("POST", "/dead-jobs/1/requeue", None),
    ("POST", "/dead-jobs/discard", {"ids": [1]}),
    ("POST", "/queues/a/pause", None),
    ("POST", "/operations/1/undo", None),
    ("GET", "/queues", None),
)


async def test_a_server_without_its_tables_is_unavailable_and_says_what_to_do(empty_dsn: str) -> None:
    async with in_process(empty_dsn) as client:
        answers = [await client.request(method, path, json=body) for method, path, body in REQUESTS]
        page = await client.get("/ui/dead")

    for answer in answers:
        assert is_problem(answer, 503), answer.request
        assert "pgq-core migrate" in answer.json()["detail"]
    assert page.status_code == 503
    assert "pgq-core migrate" in page.text
