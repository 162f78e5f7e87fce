"""Request bodies: read within limits, then checked strictly; faults are named by field and never echo a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from pgq_core.api.problems import FieldError, ProblemError, unprocessable

Model = TypeVar("Model", bound=BaseModel)

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
_SLOWEST_BODY: Final = 10.0
_MOST_FIELDS: Final = 20_000
_MOST_ERRORS: Final = 50
_LONGEST_MESSAGE: Final = 300


def json_body(model: type[Model], *, required: bool = True) -> Callable[[Request], Awaitable[Model]]:
    """A dependency: the body as `model`. An absent body counts as `{}` where it is not required."""

    async def read(request: Request) -> Model:
        body = await read_body(request, JSON_TYPE)
        if not body and not required:
            body = b"{}"
        try:
            return model.model_validate_json(body, strict=True)
        except ValidationError as error:
            raise unprocessable(*field_errors(error.errors(include_url=False, include_input=False))) from None

    return read


async def form_body(request: Request) -> dict[str, list[str]]:
    """A form of the web pages."""
    body = await read_body(request, FORM_TYPE)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:  # no UTF-8, or too many fields
        raise ProblemError(422, "invalid-request", "this is no form that this server can read") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields


async def read_body(request: Request, media_type: str) -> bytes:
    """The whole body, which the door keeps within its limit. Without a body no media type is asked for."""
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            body = await request.body()
    except TimeoutError:
        raise ProblemError(408, "too-slow", f"the body did not arrive within {_SLOWEST_BODY:g} s") from None
    except ClientDisconnect:
        raise ProblemError(400, "hung-up", "the client hung up before its body had arrived") from None
    given = request.headers.get("content-type")
    if (body or given is not None) and not _is_of(given, media_type):
        raise ProblemError(415, "unsupported-media-type", f"send the body as {media_type}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "unsupported-encoding", "send the body as it is, without a content encoding")
    return body


def field_errors(errors: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """Of pydantic's errors; never more than 50."""
    found = [FieldError(field=_path(error["loc"]), message=_message(error)) for error in errors[:_MOST_ERRORS]]
    return found or [FieldError(field="body", message="is not valid")]


def _path(parts: Sequence[int | str]) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path[:_LONGEST_MESSAGE] or "body"


def _message(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return "is no field of this request"
        case "json_invalid":
            return f"the body is no JSON: {error.get('ctx', {}).get('error', 'it cannot be read')}"[:_LONGEST_MESSAGE]
        case "value_error":  # raised by code of ours, whose words pydantic puts a prefix before
            return str(error["msg"]).removeprefix("Value error, ")[:_LONGEST_MESSAGE]
        case "string_pattern_mismatch":  # all patterns of ours say this
            return "contains the character U+0000"
        case _:
            return str(error["msg"])[:_LONGEST_MESSAGE]


def _is_of(given: str | None, media_type: str) -> bool:
    return given is not None and given.partition(";")[0].strip().lower() == media_type
