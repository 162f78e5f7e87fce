"""`/dead-jobs`: list, group, look, requeue, discard; and taking such an operation back."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from pgq_core.api.answers import answered, problems, takes
from pgq_core.api.bodies import json_body
from pgq_core.api.dead_desk import DeadDesk, Selection, Verb
from pgq_core.api.dead_models import (
    BulkAnswer,
    BulkBody,
    BulkDone,
    BulkPreview,
    DeadGroups,
    DeadJob,
    DeadJobDetail,
    DeadJobPage,
    DeadJobQuery,
    Discarded,
    RefusedItem,
    Requeued,
    RequeueManyBody,
    Undone,
)
from pgq_core.api.models import IdInPath, ReasonBody
from pgq_core.api.security import Context, Operator, Reader
from pgq_core.domain.operation import BulkResult
from pgq_core.domain.snapshot import DeadLetterDetail

router = APIRouter(tags=["dead jobs"])

Because = Annotated[ReasonBody, Depends(json_body(ReasonBody, required=False))]

_SHOWN_REFUSALS = 100
_BULK_PROBLEMS = problems(400, 401, 404, 408, 415, 422)
_ONE_PROBLEMS = problems(400, 401, 404, 408, 409, 415, 422)


@router.get("/dead-jobs", response_model=DeadJobPage, responses=problems(401, 422))
async def list_page(context: Context, caller: Reader, wanted: Annotated[DeadJobQuery, Query()]) -> Response:
    """Newest first. Type, reason, text and times are looked for in the newest 100,000."""
    work = DeadDesk(context, caller).page(
        wanted.filters_of(wanted.resolution), limit=wanted.limit, before=wanted.before, with_total=wanted.total
    )
    letters, count = await context.patience.run(work)
    page = DeadJobPage.model_validate(
        {"items": letters, "next": letters[-1].id if len(letters) == wanted.limit else None, "total": count},
        from_attributes=True,
    )
    return answered(page)


@router.get("/dead-jobs/groups", response_model=DeadGroups, responses=problems(401))
async def groups(context: Context, caller: Reader) -> Response:
    """Unresolved ones by kind of failure, largest group first."""
    found = await context.patience.run(DeadDesk(context, caller).groups())
    return answered(DeadGroups.model_validate({"groups": found}, from_attributes=True))


@router.post(
    "/dead-jobs/requeue", response_model=BulkAnswer, responses=_BULK_PROBLEMS, openapi_extra=takes(RequeueManyBody)
)
async def requeue_many(
    context: Context,
    caller: Operator,
    body: Annotated[RequeueManyBody, Depends(json_body(RequeueManyBody))],
) -> Response:
    """Back to the queue, each with a fresh budget of attempts; or, with `dry_run`, what that would mean."""
    spread = None if body.spread_seconds is None else timedelta(seconds=body.spread_seconds)
    work = _many(DeadDesk(context, caller), Verb.REQUEUE, body, spread)
    return answered(await context.patience.run(work, limit=context.api.bulk_timeout))


@router.post("/dead-jobs/discard", response_model=BulkAnswer, responses=_BULK_PROBLEMS, openapi_extra=takes(BulkBody))
async def discard_many(
    context: Context, caller: Operator, body: Annotated[BulkBody, Depends(json_body(BulkBody))]
) -> Response:
    """Resolved for good, until it is undone; or, with `dry_run`, what that would mean."""
    work = _many(DeadDesk(context, caller), Verb.DISCARD, body, None)
    return answered(await context.patience.run(work, limit=context.api.bulk_timeout))


@router.get("/dead-jobs/{letter_id}", response_model=DeadJobDetail, responses=problems(401, 404, 422))
async def look_up(context: Context, caller: Reader, letter_id: IdInPath) -> Response:
    """All that a triage needs: error, traceback, attempts, and the payload with its secrets masked."""
    desk = DeadDesk(context, caller)
    return answered(_shown(desk, await context.patience.run(desk.detail(letter_id))))


@router.post(
    "/dead-jobs/{letter_id}/requeue",
    response_model=Requeued,
    responses=_ONE_PROBLEMS,
    openapi_extra=takes(ReasonBody, required=False),
)
async def requeue(context: Context, caller: Operator, letter_id: IdInPath, body: Because) -> Response:
    """Back to the queue with a fresh budget of attempts. 409 says why not."""
    work = DeadDesk(context, caller).resolve(Verb.REQUEUE, letter_id, reason=body.reason)
    item, operation_id = await context.patience.run(work)
    return answered(Requeued(id=letter_id, job_id=item.job_id or 0, operation_id=operation_id))


@router.post(
    "/dead-jobs/{letter_id}/discard",
    response_model=Discarded,
    responses=_ONE_PROBLEMS,
    openapi_extra=takes(ReasonBody, required=False),
)
async def discard(context: Context, caller: Operator, letter_id: IdInPath, body: Because) -> Response:
    """Resolved for good, until it is undone. 409 says why not."""
    work = DeadDesk(context, caller).resolve(Verb.DISCARD, letter_id, reason=body.reason)
    _, operation_id = await context.patience.run(work)
    return answered(Discarded(id=letter_id, operation_id=operation_id))


@router.post("/operations/{operation_id}/undo", response_model=Undone, responses=problems(401, 409, 422))
async def undo(context: Context, caller: Operator, operation_id: IdInPath) -> Response:
    """Takes an operation back, as far as the world has not moved on: a replay while its job is unclaimed."""
    work = DeadDesk(context, caller).undo(operation_id)
    result = await context.patience.run(work, limit=context.api.bulk_timeout)
    return answered(Undone.model_validate(_done(result).model_dump()))


async def _many(desk: DeadDesk, verb: Verb, body: BulkBody, spread: timedelta | None) -> BulkAnswer:
    if body.dry_run:
        return BulkAnswer(preview=_preview(await _selection(desk, body)))
    if body.ids is not None:
        ids = body.ids
    elif body.selection is not None:
        ids = await desk.selected(body.selection)
    else:
        ids = await desk.selected((await _selection(desk, body)).id)
    return BulkAnswer(result=_done(await desk.resolve_many(verb, ids, reason=body.reason, spread=spread)))


async def _selection(desk: DeadDesk, body: BulkBody) -> Selection:
    if body.filter is not None:
        return await desk.freeze(body.filter.filters)
    return await desk.freeze_ids(body.ids if body.ids is not None else await desk.selected(body.selection or ""))


def _preview(selection: Selection) -> BulkPreview:
    sample = [DeadJob.model_validate(letter) for letter in selection.sample]
    return BulkPreview(selection=selection.id, count=selection.count, more=selection.more, sample=sample)


def _done(result: BulkResult) -> BulkDone:
    refusals = [RefusedItem(id=item.id, refusal=item.refusal) for item in result.items if item.refusal is not None]
    return BulkDone(
        operation_id=result.operation_id,
        done=result.done,
        refused=result.refused,
        refusals=refusals[:_SHOWN_REFUSALS],
    )


def _shown(desk: DeadDesk, detail: DeadLetterDetail) -> DeadJobDetail:
    payload = desk.shown_payload(detail.payload_text, detail.payload_size)
    return DeadJobDetail.model_validate(
        {
            **DeadJob.model_validate(detail.letter).model_dump(),
            "priority": detail.priority,
            "idempotency_key": detail.idempotency_key,
            "created_at": detail.created_at,
            "traceback": detail.traceback,
            "payload": payload.value,
            "payload_excerpt": payload.excerpt,
            "payload_bytes": detail.payload_size,
            "attempt_log": detail.attempt_log,
            "note": detail.note,
            "follow_up": detail.follow_up,
        }
    )
