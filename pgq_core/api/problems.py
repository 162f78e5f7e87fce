"""What the API answers when it cannot do what was asked: one form for every fault (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import psycopg
from pydantic import BaseModel, Field
from starlette.responses import Response

from pgq_core.database import translated
from pgq_core.errors import (
    DatabaseUnavailable,
    InvalidJob,
    InvalidPayload,
    JobNotFound,
    KeyConflict,
    MalformedData,
    MissingRights,
    OperationInterrupted,
    OperationRefused,
    QueueClosed,
    ReadOnlyRefused,
    SchemaError,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = 1
"""Seconds. Short: what is asked for again finds the database as soon as it is back."""

_MISSING: Final = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
)
"""What statements meet where the tables are not there, or not yet those of this version."""

_FIELDS = {"not_before": "scheduled_at"}
"""Names of the library that have another name over HTTP."""


class FieldError(BaseModel):
    """What is wrong with one field of the request."""

    field: str = Field(description="Path of the field, such as `data.total`.")
    message: str


class Problem(BaseModel):
    """An answer that is no success."""

    type: str = Field(description="A stable word for the kind of problem, such as `key-conflict`.")
    title: str
    status: int
    detail: str = Field(description="What happened, and what to do.")
    errors: list[FieldError] | None = Field(None, description="Per field, where fields are at fault.")
    job_id: int | None = Field(None, description="The job that is in the way.")
    operation_id: int | None = Field(None, description="The operation that was written down.")


class ProblemError(Exception):
    """Ends a request with a problem."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        job_id: int | None = None,
        operation_id: int | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.job_id = job_id
        self.operation_id = operation_id
        super().__init__(detail)

    @property
    def problem(self) -> Problem:
        return Problem(
            type=self.kind,
            title=title_of(self.status),
            status=self.status,
            detail=self.detail,
            errors=self.errors or None,
            job_id=self.job_id,
            operation_id=self.operation_id,
        )

    @property
    def body(self) -> bytes:
        """ASCII only, so that it is valid whatever the text in it."""
        return json.dumps(self.problem.model_dump(exclude_none=True), allow_nan=False).encode()

    def response(self) -> Response:
        return Response(self.body, self.status, self.headers, MEDIA_TYPE)


def title_of(status: int) -> str:
    return HTTPStatus(status).phrase


def unprocessable(*errors: FieldError) -> ProblemError:
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return ProblemError(422, "invalid-request", f"{first.field}: {first.message}{more}", errors=errors)


def unavailable(detail: str) -> ProblemError:
    headers = {"Retry-After": str(RETRY_AFTER)}
    return ProblemError(503, "unavailable", detail, headers=headers)


def misfit() -> ProblemError:
    return unavailable("the database's schema does not fit this server: run pgq-core migrate, then try again")


def not_found(detail: str) -> ProblemError:
    return ProblemError(404, "not-found", detail)


def refused(detail: str) -> ProblemError:
    return ProblemError(409, "refused", detail)


def problem_of(error: Exception) -> ProblemError | None:
    """The answer for an error of ours or of the driver; None for one that is a fault of ours."""
    if isinstance(error, _MISSING):
        return misfit()
    if isinstance(error, psycopg.Error):
        known = translated(error)
        return problem_of(known) if not isinstance(known, psycopg.Error) else None
    match error:
        case ProblemError():
            return error
        case InvalidPayload() | InvalidJob():
            return unprocessable(*_field_errors(error))
        case KeyConflict():
            return ProblemError(409, "key-conflict", str(error), job_id=error.job_id)
        case JobNotFound():
            return not_found(str(error))
        case OperationRefused():
            return refused(str(error))
        case _:
            return _problem_of_the_place(error)


def _field_errors(error: InvalidPayload | InvalidJob) -> Iterable[FieldError]:
    match error:
        case MalformedData():
            return [FieldError(field=path, message=message) for path, message in error.problems]
        case InvalidPayload():
            return [FieldError(field=error.path, message=error.reason)]
        case InvalidJob():
            return [FieldError(field=_FIELDS.get(error.field, error.field), message=error.reason)]


def _problem_of_the_place(error: Exception) -> ProblemError | None:
    """Nothing is wrong with the request; this server cannot serve it, now or at all."""
    match error:
        case OperationInterrupted():
            problem = unavailable(str(error))
            problem.operation_id = error.operation_id
            return problem
        case DatabaseUnavailable():
            return unavailable("the database cannot be reached right now; try again")
        case MissingRights():
            return ProblemError(403, "missing-rights", f"the database role of this server may not do that: {error}")
        case SchemaError():
            return misfit()
        case QueueClosed():
            return unavailable("this server is stopping; try again")
        case ReadOnlyRefused():
            return ProblemError(403, "read-only", "this server may only look")
        case _:
            return None
