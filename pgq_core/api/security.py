"""Who is asking: dependencies of the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from pgq_core.api.context import ApiContext
from pgq_core.api.problems import ProblemError
from pgq_core.api.tokens import ALL_SCOPES, Caller, Scope

_bearer = HTTPBearer(auto_error=False, description="A token of `pgq-core api tokens create`; none on loopback.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def context_of(request: Request) -> ApiContext:
    """A coroutine, since FastAPI calls plain functions in a thread: dearer than all the rest of a request."""
    return cast(ApiContext, request.app.state.context)


Context = Annotated[ApiContext, Depends(context_of)]


def needs(scope: Scope) -> Callable[[Request, Context, Credentials], Awaitable[Caller]]:
    """A dependency: the caller, who has this scope."""

    async def caller(request: Request, context: Context, credentials: Credentials) -> Caller:
        given = request.headers.get("authorization")
        found = await _caller(context, given, credentials)
        if scope not in found.scopes:
            raise ProblemError(403, "missing-scope", f"this token lacks the scope {scope.value!r}")
        return found

    return caller


Reader = Annotated[Caller, Depends(needs(Scope.READ))]
Producer = Annotated[Caller, Depends(needs(Scope.ENQUEUE))]
Operator = Annotated[Caller, Depends(needs(Scope.OPERATE))]


async def metrics_reader(request: Request, context: Context, credentials: Credentials) -> None:
    if not context.api.open_metrics:
        await needs(Scope.READ)(request, context, credentials)


async def _caller(context: ApiContext, given: str | None, credentials: HTTPAuthorizationCredentials | None) -> Caller:
    """A token that is sent has to be right, also where none is asked for."""
    if given is None:
        if context.api.asks_for_tokens:
            raise unauthorized("send a token: Authorization: Bearer ...")
        return Caller(context.own_name, ALL_SCOPES)
    secret = credentials.credentials if credentials is not None else ""
    found = await context.patience.run(context.tokens.find(secret))
    if found is None:
        raise unauthorized("this token is unknown, revoked or past its time")
    return found


def unauthorized(detail: str) -> ProblemError:
    return ProblemError(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
