"""`/jobs`: add, look up, cancel."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pgq_core.api.answers import answered, problems, takes
from pgq_core.api.bodies import json_body
from pgq_core.api.context import ApiContext
from pgq_core.api.direct_route import DirectRoute
from pgq_core.api.models import CancelledJob, EnqueueBody, EnqueuedJobAnswer, IdInPath, JobAnswer
from pgq_core.api.security import ASKS_FOR_TOKEN, Context, Operator, Reader, caller_of, context_of
from pgq_core.api.tokens import Caller, Scope
from pgq_core.domain.enqueue import checked_name, checked_start
from pgq_core.domain.job import JSON
from pgq_core.domain.payload import Unreadable
from pgq_core.job_queue import CancelAnswer, EnqueuedJob, JobReport, JobRequest
from pgq_core.traces import current_context

router = APIRouter(tags=["jobs"])

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,64})?"
)
_MAX_TRACESTATE = 512
_read_job = json_body(EnqueueBody)


async def enqueue(request: Request) -> Response:
    """Adds one job.

    409: the idempotency key belongs to a job with another payload or queue. 422: a field, or the data, does not fit;
    also a type that no worker ever announced, once any was.
    """
    context = context_of(request)
    await caller_of(request, context, Scope.ENQUEUE)
    body = await _read_job(request)
    size = int(request.headers.get("content-length") or context.api.max_body)
    job = await context.patience.run(_enqueued(context, body, size=size, trace=_trace_of(request)))
    answer = EnqueuedJobAnswer(id=job.id, created=job.created, url=f"/jobs/{job.id}")
    return answered(answer, status=201 if job.created else 200, headers={"Location": answer.url})


router.add_api_route(
    "/jobs",
    enqueue,
    methods=["POST"],
    route_class_override=DirectRoute,
    status_code=201,
    response_model=EnqueuedJobAnswer,
    responses={
        200: {"model": EnqueuedJobAnswer, "description": "The job that already has the idempotency key."},
        **problems(400, 401, 408, 409, 415, 422),
    },
    openapi_extra={**takes(EnqueueBody), **ASKS_FOR_TOKEN},
)


@router.get("/jobs/{job_id}", response_model=JobAnswer, responses=problems(401, 404, 422))
async def look_up(context: Context, _: Reader, job_id: IdInPath) -> Response:
    """What is known of a job, in every state, also after it left the queue."""
    return answered(_shown(context, await context.patience.run(_found(context, job_id))))


@router.delete(
    "/jobs/{job_id}",
    response_model=CancelledJob,
    responses={
        202: {"model": CancelledJob, "description": "It runs; its worker was asked to stop it."},
        **problems(401, 404, 422),
    },
)
async def cancel(context: Context, caller: Operator, job_id: IdInPath) -> Response:
    """Ends a job that does not run, and asks the worker of one that does. One that has ended is left as it is."""
    cancelled = await context.patience.run(_cancelled(context, caller, job_id))
    return answered(cancelled, status=202 if cancelled.answer is CancelAnswer.REQUESTED else 200)


async def _enqueued(context: ApiContext, body: EnqueueBody, *, size: int, trace: dict[str, str] | None) -> EnqueuedJob:
    context.refuse_if_read_only()
    data = {} if body.data is None else body.data
    name = checked_name("type", body.type)
    checked_start(body.delay, body.scheduled_at)
    known = await context.job_types.admitted(name, data, size=size)
    # Said in full, since what the queue itself remembers of the announced types is up to half a minute old.
    timeout: timedelta | float | None = body.timeout
    if timeout is None and known is not None:
        timeout = known.timeout
    request = JobRequest(
        name,
        data,
        queue=body.queue or (known.queue if known is not None else None),
        priority=body.priority,
        delay=body.delay,
        not_before=body.scheduled_at,
        idempotency_key=body.idempotency_key,
        max_attempts=body.max_attempts or (known.max_attempts if known is not None else None),
        timeout=timeout,
        trace_context=trace,
    )
    return await context.intake.add(request, size=size)


def _trace_of(request: Request) -> dict[str, str] | None:
    """The W3C trace context of this process's own span, else the caller's, which needs nothing here that traces."""
    if (here := current_context()) is not None:
        return here
    parent = request.headers.get("traceparent", "")
    if not _TRACEPARENT.fullmatch(parent):
        return None  # as the standard wants it: what cannot be read counts as absent
    state = request.headers.get("tracestate", "")
    is_sound = 0 < len(state) <= _MAX_TRACESTATE and state.isascii() and state.isprintable()
    return {"traceparent": parent, "tracestate": state} if is_sound else {"traceparent": parent}


async def _found(context: ApiContext, job_id: int) -> JobReport:
    async with context.looking.connection() as conn:
        return await context.queue.get(job_id, conn=conn)


async def _cancelled(context: ApiContext, caller: Caller, job_id: int) -> CancelledJob:
    operations = context.operations(caller.name)
    report = await _found(context, job_id)
    operation_id: int | None = None
    answer = CancelAnswer.ENDED
    if not report.state.is_final:
        async with context.looking.connection() as conn:
            result = await operations.cancel(conn, [job_id])
        operation_id = result.operation_id
        (item,) = result.items
        if item.refusal is None:
            answer = CancelAnswer(item.answer or CancelAnswer.CANCELLED)
        report = await _found(context, job_id)
    return CancelledJob(id=job_id, answer=answer, state=report.state, operation_id=operation_id)


def _shown(context: ApiContext, report: JobReport) -> JobAnswer:
    """Secrets masked, and what Python cannot read left out."""
    answer = {name: getattr(report, name) for name in JobAnswer.model_fields if name not in ("data", "result")}
    return JobAnswer.model_validate(
        {**answer, "data": _readable(context, report.data), "result": _readable(context, report.result)},
        from_attributes=True,
    )


def _readable(context: ApiContext, value: JSON | Unreadable) -> Any:  # noqa: ANN401 - JSON
    return None if isinstance(value, Unreadable) else context.mask.value(value)
