"""`/queues`: how they stand, pause, resume, what they write down."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from pgq_core.api.answers import answered, problems, takes
from pgq_core.api.bodies import json_body
from pgq_core.api.models import AuditBody, QueueActed, QueueAnswer, QueueAudit, QueuesAnswer, ReasonBody
from pgq_core.api.problems import refused
from pgq_core.api.security import Context, Operator, Reader
from pgq_core.domain.audit import checked_rule
from pgq_core.domain.operation import ActionResult

router = APIRouter(tags=["queues"])

QueueName = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Because = Annotated[ReasonBody, Depends(json_body(ReasonBody, required=False))]
Wanted = Annotated[AuditBody, Depends(json_body(AuditBody))]

_PROBLEMS = problems(400, 401, 404, 408, 409, 415, 422)  # 404: a path with a line break is none


@router.get("/queues", response_model=QueuesAnswer, responses=problems(401))
async def list_queues(context: Context, _: Reader) -> Response:
    """Every queue that has jobs, dead letters or workers, or was ever paused. Counts are exact up to 10,000."""
    overview = await context.patience.run(context.board.overview())
    queues = [QueueAnswer.model_validate(view) for view in overview.queues]
    return answered(QueuesAnswer(taken_at=overview.taken_at, queues=queues))


@router.post(
    "/queues/{name:path}/pause",
    response_model=QueueActed,
    responses=_PROBLEMS,
    openapi_extra=takes(ReasonBody, required=False),
)
async def pause(context: Context, caller: Operator, name: QueueName, body: Because) -> Response:
    """Holds for every claim that starts after this; what runs goes on."""

    async def work() -> ActionResult:
        operations = context.operations(caller.name)
        async with context.looking.connection() as conn:
            return await operations.pause(conn, name, body.reason)

    return _acted(name, await context.patience.run(work()), paused=True)


@router.post(
    "/queues/{name:path}/resume",
    response_model=QueueActed,
    responses=_PROBLEMS,
    openapi_extra=takes(ReasonBody, required=False),
)
async def resume(context: Context, caller: Operator, name: QueueName, body: Because) -> Response:
    """Lets claims go on. 409 when it is not paused."""

    async def work() -> ActionResult:
        operations = context.operations(caller.name)
        async with context.looking.connection() as conn:
            return await operations.resume(conn, name, body.reason)

    return _acted(name, await context.patience.run(work()), paused=False)


@router.post(
    "/queues/{name:path}/audit", response_model=QueueAudit, responses=_PROBLEMS, openapi_extra=takes(AuditBody)
)
async def set_audit(context: Context, caller: Operator, name: QueueName, body: Wanted) -> Response:
    """Which of its runs leave a row in `job_runs` from now on. Only plain successes are ever left out."""

    async def work() -> ActionResult:
        operations = context.operations(caller.name)
        async with context.looking.connection() as conn:
            return await operations.set_audit(conn, name, body.audit, share=body.share, reason=body.reason)

    result = await context.patience.run(work())
    share = checked_rule(body.audit, body.share).share
    return answered(QueueAudit(name=name, audit=body.audit, audit_sample=share, operation_id=result.operation_id))


def _acted(name: str, result: ActionResult, *, paused: bool) -> Response:
    if result.refusal is not None:
        raise refused(result.refusal)
    return answered(QueueActed(name=name, paused=paused, operation_id=result.operation_id))
