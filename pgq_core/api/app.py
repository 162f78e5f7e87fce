"""Puts the application together: routes, problems for every fault, OpenAPI, and the doorman around it all."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any, Final

import psycopg
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp

from pgq_core.api.bodies import field_errors
from pgq_core.api.context import ApiContext
from pgq_core.api.dead_models import BulkBody, RequeueManyBody
from pgq_core.api.doorman import Doorman, DoorRules
from pgq_core.api.models import AuditBody, EnqueueBody, ReasonBody
from pgq_core.api.origins import Origins
from pgq_core.api.problems import FieldError, Problem, ProblemError, problem_of, title_of, unprocessable
from pgq_core.api.rate_limit import RateLimit
from pgq_core.api.routes import dead_jobs, health, jobs, queues
from pgq_core.api.web import pages
from pgq_core.domain.text import describe
from pgq_core.errors import PgqError
from pgq_core.logs import get_logger

_ROUTES: Final = (jobs, dead_jobs, queues, health, pages)
_BODIES: Final = (EnqueueBody, ReasonBody, AuditBody, BulkBody, RequeueManyBody, Problem)
_KINDS: Final = {404: "not-found", 405: "method-not-allowed"}
_DETAILS: Final = {404: "there is nothing at this path", 405: "this path knows other methods; see the header Allow"}


def create_app(context: ApiContext) -> ASGIApp:
    """The whole server as one ASGI application."""
    api = context.api
    rules = DoorRules(Origins.of(api), RateLimit(api.requests_per_second), api.max_body)
    return Doorman(routed(context), rules, context.traffic)


def routed(context: ApiContext) -> FastAPI:
    """The application without its doorman."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with context.running():
            yield

    app = FastAPI(
        title="pgq",
        version=version("pgq-tui"),
        description="A job queue on PostgreSQL: jobs, dead letters, queues.",
        lifespan=lifespan,
        # The usual pages load scripts from elsewhere; the document itself is enough for every tool.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    for module in _ROUTES:
        app.include_router(module.router, include_in_schema=module is not pages)
    for kind in (ProblemError, PgqError, psycopg.Error, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _tell)
    app.openapi = _described(app, asks_for_tokens=context.api.asks_for_tokens)  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
    return app


async def _tell(request: Request, error: Exception) -> Response:
    problem = _problem(error)
    if problem.status == 405:  # noqa: PLR2004 - the framework knows the methods of one route, this path may have more
        problem.headers["Allow"] = ", ".join(_methods(request))
    if problem.status == 500:  # noqa: PLR2004 - a fault of ours, told to nobody but the log
        get_logger("pgq.api").error("http_request_failed", error=describe(error), exc_info=error, path=request.url.path)
    if pages.is_page(request):
        return pages.told(request, problem)
    return problem.response()


def _methods(request: Request) -> list[str]:
    routes = (route for module in _ROUTES for route in module.router.routes)
    fitting = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in fitting for method in getattr(route, "methods", None) or ()}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def _problem(error: Exception) -> ProblemError:
    match error:
        case RequestValidationError():
            return unprocessable(*_of_parameters(error))
        case HTTPException():
            status = error.status_code
            detail = _DETAILS.get(status, title_of(status))
            return ProblemError(status, _KINDS.get(status, "refused"), detail, headers=error.headers)
        case _:
            fault = ProblemError(500, "fault", "this is a fault of the server; its log says more")
            return problem_of(error) or fault


def _of_parameters(error: RequestValidationError) -> list[FieldError]:
    """The first part of a place says whether it is in the path or the query: nobody looks for it there."""
    return field_errors([{**one, "loc": tuple(one["loc"])[1:]} for one in error.errors()])


def _described(app: FastAPI, *, asks_for_tokens: bool) -> Callable[[], dict[str, Any]]:
    """Adds the bodies, which are read by our own code, to what FastAPI finds out by itself."""
    original = app.openapi

    def openapi() -> dict[str, Any]:
        document = original()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        _, ours = models_json_schema(
            [(model, "validation") for model in _BODIES], ref_template="#/components/schemas/{model}"
        )
        schemas.update(ours.get("$defs", {}))
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        if not asks_for_tokens:
            _make_tokens_optional(document)
        return document

    return openapi


def _make_tokens_optional(document: dict[str, Any]) -> None:
    for methods in document["paths"].values():
        for operation in methods.values():
            if {} not in operation.get("security", [{}]):
                operation["security"] = [*operation["security"], {}]
