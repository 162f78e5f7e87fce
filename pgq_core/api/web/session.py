"""Who is signed in at a browser, and that its forms come from our own pages.

The session cookie holds the token itself: the server keeps nothing, so several of them need not agree on anything. No
script can read the cookie, and no other site makes a browser send it. Forms carry a random value that stands in another
such cookie as well.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from pgq_core.api.bodies import form_body
from pgq_core.api.context import ApiContext
from pgq_core.api.problems import ProblemError
from pgq_core.api.security import unauthorized
from pgq_core.api.tokens import ALL_SCOPES, Caller, Scope

SESSION: Final = "pgq_session"
FORM_KEY: Final = "pgq_form"
FIELD: Final = "form_key"
_SESSION_SECONDS: Final = 12 * 3600
_KEY_LENGTH: Final = 32


async def signed_in(request: Request, context: ApiContext, scope: Scope) -> Caller:
    """Raises a 401 when nobody is, a 403 when the one who is may not."""
    if not context.api.asks_for_tokens:
        return Caller(context.own_name, ALL_SCOPES)
    secret = request.cookies.get(SESSION)
    found = await context.patience.run(context.tokens.find(secret)) if secret else None
    if found is None:
        raise unauthorized("sign in with a token first")
    if scope not in found.scopes:
        raise ProblemError(403, "missing-scope", f"this token lacks the scope {scope.value!r}")
    return found


async def checked_form(request: Request) -> Mapping[str, Sequence[str]]:
    """The fields of a form that one of our own pages showed."""
    fields = await form_body(request)
    expected = request.cookies.get(FORM_KEY, "")
    given = first(fields, FIELD)
    if not expected or not hmac.compare_digest(expected.encode(), given.encode()):
        raise ProblemError(403, "stale-form", "this form is not of this page, or too old: load the page again")
    return fields


def first(fields: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(fields.get(name, ())), "")


def form_key(request: Request) -> str:
    """The value for the forms of a page: the browser's own, or a new one."""
    known = request.cookies.get(FORM_KEY, "")
    return known if len(known) == _KEY_LENGTH and known.isalnum() else secrets.token_hex(_KEY_LENGTH // 2)


def remember_form_key(response: Response, request: Request, key: str) -> None:
    if request.cookies.get(FORM_KEY) != key:
        _set(response, request, FORM_KEY, key)


def remember_token(response: Response, request: Request, secret: str) -> None:
    _set(response, request, SESSION, secret)


def forget_token(response: Response) -> None:
    response.delete_cookie(SESSION, path="/ui")


def _set(response: Response, request: Request, name: str, value: str) -> None:
    response.set_cookie(
        name,
        value,
        max_age=_SESSION_SECONDS,
        path="/ui",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
