"""How routes answer: models as JSON that is valid whatever the text in it, and problems as OpenAPI lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from starlette.responses import Response

from pgq_core.api.problems import MEDIA_TYPE, Problem, title_of

_EVERYWHERE: Final = (403, 413, 421, 429, 500, 503)


def answered(model: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """ASCII only, whole numbers exact."""
    body = json.dumps(model.model_dump(mode="json"), allow_nan=False).encode()
    return Response(body, status, headers, "application/json")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route: these, and those that every route may answer."""
    return {status: _described(status) for status in sorted({*statuses, *_EVERYWHERE})}


def _described(status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": title_of(status),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}},
    }
    if status in (429, 503):
        described["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return described


def takes(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """For `openapi_extra=` of a route whose body is read by `json_body`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
