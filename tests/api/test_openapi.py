"""The document that describes the API is complete, and what the server answers is what it says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import InvalidArgument, Unsatisfiable
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.api.rows import announce, bury
from tests.api.server import ApiProcess
from tests.support.queue_database import QueueDatabase

EXAMPLES = 5
MANY_EXAMPLES = 50


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_the_document_describes_every_path_and_every_answer(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {
        "/jobs",
        "/jobs/{job_id}",
        "/dead-jobs",
        "/dead-jobs/groups",
        "/dead-jobs/requeue",
        "/dead-jobs/discard",
        "/dead-jobs/{letter_id}",
        "/dead-jobs/{letter_id}/requeue",
        "/dead-jobs/{letter_id}/discard",
        "/operations/{operation_id}/undo",
        "/queues",
        "/queues/{name}/audit",
        "/queues/{name}/pause",
        "/queues/{name}/resume",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    for path, method, operation in operations(document):
        assert operation["description"], path
        for status in ("403", "421", "429", "500", "503"):
            assert "application/problem+json" in operation["responses"][status]["content"], (path, status)
        if method == "post" and "{" not in path:
            assert operation["requestBody"]["content"]["application/json"]["schema"], path
    schemas = document["components"]["schemas"]
    missing = {ref for ref in references(document) if ref.rpartition("/")[2] not in schemas}
    assert missing == set()
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_real_answers_have_the_form_that_the_document_says(
    client: httpx.Client, document: dict[str, Any], database: QueueDatabase
) -> None:
    announce(database, "mail", {"type": "object", "required": ["to"]})
    letter = bury(database, "mail", {"to": "a"})
    job = client.post("/jobs", json={"type": "mail", "data": {"to": "a"}}).json()["id"]
    requests: list[tuple[str, str, str, dict[str, Any]]] = [
        ("post", "/jobs", "/jobs", {"json": {"type": "mail", "data": {"to": "b"}}}),
        ("post", "/jobs", "/jobs", {"json": {"type": "mail"}}),
        ("get", "/jobs/{job_id}", f"/jobs/{job}", {}),
        ("get", "/jobs/{job_id}", "/jobs/999", {}),
        ("delete", "/jobs/{job_id}", f"/jobs/{job}", {}),
        ("get", "/dead-jobs", "/dead-jobs?total=true", {}),
        ("get", "/dead-jobs/groups", "/dead-jobs/groups", {}),
        ("get", "/dead-jobs/{letter_id}", f"/dead-jobs/{letter}", {}),
        ("post", "/dead-jobs/requeue", "/dead-jobs/requeue", {"json": {"ids": [letter], "dry_run": True}}),
        ("post", "/dead-jobs/discard", "/dead-jobs/discard", {"json": {"ids": [999]}}),
        ("post", "/dead-jobs/{letter_id}/requeue", f"/dead-jobs/{letter}/requeue", {}),
        ("post", "/dead-jobs/{letter_id}/discard", f"/dead-jobs/{letter}/discard", {}),
        ("get", "/queues", "/queues", {}),
        ("post", "/queues/{name}/pause", "/queues/a/pause", {}),
        ("get", "/readyz", "/readyz", {}),
    ]
    registry = Registry().with_resource("urn:api", Resource.from_contents(document, _dialect()))

    for method, path, address, given_body in requests:
        answer = client.request(method, address, **given_body)
        described = document["paths"][path][method]["responses"][str(answer.status_code)]["content"]
        schema = described[answer.headers["content-type"]]["schema"]
        absolute = {"$ref": f"urn:api{schema['$ref']}"}
        Draft202012Validator(absolute, registry=registry).validate(answer.json())


def _dialect() -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012


@pytest.mark.slow
def test_generated_requests_meet_no_fault_and_no_undocumented_answer(api: ApiProcess, database: QueueDatabase) -> None:
    ask_everything(api, database, EXAMPLES)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_generated_requests_meet_no_fault_and_no_undocumented_answer(
    api: ApiProcess, database: QueueDatabase
) -> None:
    ask_everything(api, database, MANY_EXAMPLES)


def ask_everything(api: ApiProcess, database: QueueDatabase, examples: int) -> None:
    """By schemathesis: requests that fit the document and requests that do not."""
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    announce(database, "mail", {"type": "object", "required": ["to"]})
    for number in range(3):
        bury(database, f"kind-{number}")
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]
    schema = schemathesis.openapi.from_url(f"{api.url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                case.call_and_validate(base_url=api.url, checks=checks)

            with contextlib.suppress(Unsatisfiable, InvalidArgument):  # nothing about it can be wrong
                ask()
