"""The pages under `/ui`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from pgq_core.api.context import ApiContext
from pgq_core.api.dead_desk import DeadDesk, Selection, Verb
from pgq_core.api.models import LARGEST_ID, IdInPath
from pgq_core.api.problems import ProblemError, not_found
from pgq_core.api.security import Context
from pgq_core.api.tokens import Caller, Scope
from pgq_core.api.web.filtering import REASONS, RESOLUTIONS, ListFilter
from pgq_core.api.web.rendering import render
from pgq_core.api.web.session import (
    FIELD,
    checked_form,
    first,
    forget_token,
    form_key,
    remember_form_key,
    remember_token,
    signed_in,
)
from pgq_core.domain.operation import BulkResult

router = APIRouter()

HOME: Final = "/ui/dead"
LOGIN: Final = "/ui/login"
PAGE_SIZE: Final = 50
_STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SEE_OTHER: Final = 303
_UNAUTHORIZED: Final = 401


def is_page(request: Request) -> bool:
    return request.url.path.startswith("/ui")


def told(request: Request, problem: ProblemError) -> Response:
    """A problem as a page; who is not signed in is led to where one does that."""
    if problem.status == _UNAUTHORIZED and request.method == "GET":
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{LOGIN}?{urlencode({'to': wanted})}", _SEE_OTHER)
    response = render("problem.html", {"problem": problem.problem, "caller": None}, status=problem.status)
    response.headers.update(problem.headers)
    return response


@router.get("/")
@router.get("/ui")
async def home() -> Response:
    return RedirectResponse(HOME, _SEE_OTHER)


@router.get("/ui/static/{name}")
async def static(name: str) -> Response:
    if name not in _STATIC:
        raise not_found("there is no such file")
    text = (files(__package__) / "static" / name).read_bytes()
    return Response(text, media_type=_STATIC[name], headers={"Cache-Control": "max-age=300"})


@router.get("/ui/dead")
async def list_page(request: Request, context: Context) -> Response:
    caller = await signed_in(request, context, Scope.READ)
    wanted = ListFilter.of(request.query_params)
    desk = DeadDesk(context, caller)
    before = _id(request.query_params.get("before"))
    filters = wanted.filters
    letters, total = await context.patience.run(desk.page(filters, limit=PAGE_SIZE, before=before, with_total=True))
    groups = await context.patience.run(desk.groups())
    values = {
        "wanted": wanted,
        "letters": letters,
        "total": total,
        "groups": groups,
        "largest": max((group.count.value for group in groups), default=1),
        "older": wanted.address(before=letters[-1].id) if len(letters) == PAGE_SIZE else None,
        "is_first_page": before is None,
        "reasons": REASONS,
        "resolutions": RESOLUTIONS,
        "newest": await context.patience.run(desk.newest()),
        "notice": _notice(request.query_params),
    }
    return _page(request, context, caller, "list.html", values)


@router.get("/ui/dead/newest")
async def newest(request: Request, context: Context) -> Response:
    """For the script of the list: whether something has died since it was made."""
    desk = DeadDesk(context, await signed_in(request, context, Scope.READ))
    return JSONResponse({"newest": await context.patience.run(desk.newest())})


@router.get("/ui/dead/{letter_id:int}")
async def detail_page(request: Request, context: Context, letter_id: IdInPath) -> Response:
    caller = await signed_in(request, context, Scope.READ)
    desk = DeadDesk(context, caller)
    detail = await context.patience.run(desk.detail(letter_id))
    values = {
        "detail": detail,
        "letter": detail.letter,
        "payload": desk.shown_payload(detail.payload_text, detail.payload_size),
        "notice": _notice(request.query_params),
    }
    return _page(request, context, caller, "detail.html", values)


@router.post("/ui/dead/preview")
async def preview(request: Request, context: Context) -> Response:
    """What a bulk verb would act on: the ticked ones, or all that match the filter."""
    caller = await signed_in(request, context, Scope.OPERATE)
    fields = await checked_form(request)
    verb, is_all = _verb_of_button(first(fields, "act"))
    wanted = ListFilter.of({name: first(fields, name) for name in ListFilter.__dataclass_fields__})
    desk = DeadDesk(context, caller)
    ids = [found for text in fields.get("ids", ()) if (found := _id(text)) is not None]
    if is_all:
        work = desk.freeze(wanted.filters)
    elif ids:
        work = desk.freeze_ids(ids)
    else:
        raise ProblemError(422, "invalid-request", "tick some dead letters first, or choose all that match")
    selection: Selection = await context.patience.run(work, limit=context.api.bulk_timeout)
    values = {"selection": selection, "verb": verb, "wanted": wanted, "back": wanted.address(), "notice": None}
    return _page(request, context, caller, "preview.html", values)


@router.post("/ui/dead/run")
async def run(request: Request, context: Context) -> Response:
    caller = await signed_in(request, context, Scope.OPERATE)
    fields = await checked_form(request)
    verb = _verb(first(fields, "verb"))
    desk = DeadDesk(context, caller)

    async def work() -> BulkResult:
        ids = await desk.selected(first(fields, "selection"))
        return await desk.resolve_many(verb, ids, reason=_reason(fields))

    result = await context.patience.run(work(), limit=context.api.bulk_timeout)
    return _back_to_list(fields, verb.value, result)


@router.post("/ui/undo")
async def undo(request: Request, context: Context) -> Response:
    caller = await signed_in(request, context, Scope.OPERATE)
    fields = await checked_form(request)
    operation_id = _id(first(fields, "operation"))
    if operation_id is None:
        raise ProblemError(422, "invalid-request", "which operation?")
    work = DeadDesk(context, caller).undo(operation_id)
    result = await context.patience.run(work, limit=context.api.bulk_timeout)
    return _back_to_list(fields, "undo", result)


@router.post("/ui/dead/{letter_id:int}/{verb}")
async def resolve(request: Request, context: Context, letter_id: IdInPath, verb: str) -> Response:
    caller = await signed_in(request, context, Scope.OPERATE)
    fields = await checked_form(request)
    wanted = _verb(verb)
    work = DeadDesk(context, caller).resolve(wanted, letter_id, reason=_reason(fields))
    item, operation_id = await context.patience.run(work)
    return _back_to_list(fields, wanted.value, BulkResult(operation_id, (item,)))


@router.get("/ui/login")
async def login_page(request: Request, context: Context) -> Response:
    if not context.api.asks_for_tokens:
        return RedirectResponse(HOME, _SEE_OTHER)
    values = {"to": _local(request.query_params.get("to")), "fault": None, "notice": None}
    return _page(request, context, None, "login.html", values)


@router.post("/ui/login")
async def login(request: Request, context: Context) -> Response:
    fields = await checked_form(request)
    secret = first(fields, "token").strip()
    target = _local(first(fields, "to"))
    if await context.patience.run(context.tokens.find(secret)) is None:
        values = {"to": target, "fault": "This token is unknown, revoked or past its time.", "notice": None}
        return _page(request, context, None, "login.html", values, status=_UNAUTHORIZED)
    response = RedirectResponse(target, _SEE_OTHER)
    remember_token(response, request, secret)
    return response


@router.post("/ui/logout")
async def logout(request: Request) -> Response:
    await checked_form(request)
    response = RedirectResponse(LOGIN, _SEE_OTHER)
    forget_token(response)
    return response


def _page(
    request: Request,
    context: ApiContext,
    caller: Caller | None,
    template: str,
    values: Mapping[str, Any],
    *,
    status: int = 200,
) -> Response:
    key = form_key(request)
    may_act = caller is not None and Scope.OPERATE in caller.scopes and not context.settings.read_only
    common = {
        "caller": caller,
        "may_act": may_act,
        "asks_for_tokens": context.api.asks_for_tokens,
        "form_field": FIELD,
        "form_key": key,
    }
    response = render(template, {**common, **values}, status=status)
    remember_form_key(response, request, key)
    return response


def _back_to_list(fields: Mapping[str, Sequence[str]], done: str, result: BulkResult) -> Response:
    """So that a reload of what the browser shows next repeats nothing."""
    wanted = ListFilter.of({name: first(fields, name) for name in ListFilter.__dataclass_fields__})
    address = wanted.address(
        done=done, count=result.done, refused=result.refused or None, operation=result.operation_id
    )
    return RedirectResponse(address, _SEE_OTHER)


def _notice(query: Mapping[str, str]) -> dict[str, Any] | None:
    """What the operation before this page did, as its redirect says it; numbers and known words only."""
    words = {Verb.REQUEUE.value: "Replayed", Verb.DISCARD.value: "Discarded", "undo": "Taken back:"}
    done = query.get("done", "")
    if done not in words:
        return None
    return {
        "words": words[done],
        "count": _id(query.get("count")) or 0,
        "refused": _id(query.get("refused")) or 0,
        "operation": None if done == "undo" else _id(query.get("operation")),
    }


def _id(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > len(str(LARGEST_ID)):
        return None
    number = int(text)
    return number if 1 <= number <= LARGEST_ID else None


def _verb(word: str) -> Verb:
    if word not in set(Verb):
        raise not_found("there is no such action")
    return Verb(word)


def _verb_of_button(act: str) -> tuple[Verb, bool]:
    """`requeue`, or `requeue-all`."""
    word, _, which = act.partition("-")
    return _verb(word), which == "all"


def _reason(fields: Mapping[str, Sequence[str]]) -> str | None:
    return first(fields, "because").strip()[:2000] or None


def _local(address: str | None) -> str:
    """Only pages of ours: a link must not lead somewhere else by way of the sign-in."""
    if address is None or not address.startswith("/ui/") or any(sign in address for sign in "\\\r\n"):
        return HOME
    return address
