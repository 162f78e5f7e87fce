"""Who is asking: dependencies of the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, cast

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from pgq_core.api.context import ApiContext
from pgq_core.api.problems import ProblemError
from pgq_core.api.tokens import Caller, Scope

_bearer = HTTPBearer(auto_error=False, description="A token of `pgq-core api tokens create`; none on loopback.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


ASKS_FOR_TOKEN: Final[dict[str, Any]] = {"security": [{"HTTPBearer": []}]}
"""For `openapi_extra=` of a route that calls `caller_of` itself."""


def context_of(request: Request) -> ApiContext:
    return cast(ApiContext, request.app.state.context)


async def _context(request: Request) -> ApiContext:
    """A coroutine, since FastAPI calls plain functions in a thread: dearer than all the rest of a request."""
    return context_of(request)


Context = Annotated[ApiContext, Depends(_context)]


def needs(scope: Scope) -> Callable[[Request, Context, Credentials], Awaitable[Caller]]:
    """A dependency: the caller, who has this scope. The credentials stand there for the OpenAPI document alone."""

    async def caller(request: Request, context: Context, _: Credentials) -> Caller:
        return await caller_of(request, context, scope)

    return caller


async def caller_of(request: Request, context: ApiContext, scope: Scope) -> Caller:
    """Who asks, and has this scope; else 401 or 403. A token that is sent has to be right, even where none is due."""
    given = request.headers.get("authorization")
    if given is None:
        if context.asks_for_tokens:
            raise unauthorized("send a token: Authorization: Bearer ...")
        return context.local_caller
    kind, _, secret = given.partition(" ")
    found = await context.patience.run(context.tokens.find(secret.strip())) if kind.lower() == "bearer" else None
    if found is None:
        raise unauthorized("this token is unknown, revoked or past its time")
    if scope not in found.scopes:
        raise ProblemError(403, "missing-scope", f"this token lacks the scope {scope.value!r}")
    return found


Reader = Annotated[Caller, Depends(needs(Scope.READ))]
Operator = Annotated[Caller, Depends(needs(Scope.OPERATE))]


async def metrics_reader(request: Request, context: Context, _: Credentials) -> None:
    if not context.api.open_metrics:
        await caller_of(request, context, Scope.READ)


def unauthorized(detail: str) -> ProblemError:
    return ProblemError(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
