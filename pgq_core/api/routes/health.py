"""`/healthz`, `/readyz`, `/metrics`: for machines; none of them waits for the database."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from starlette.responses import Response

from pgq_core.api.answers import answered, problems
from pgq_core.api.models import Health
from pgq_core.api.problems import unavailable
from pgq_core.api.security import Context, metrics_reader
from pgq_core.metrics.service import CONTENT_TYPE

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Health, responses=problems())
async def alive() -> Response:
    """This process lives. A restart would not bring the database back, so the database is not asked."""
    return answered(Health(status="alive"))


@router.get("/readyz", response_model=Health, responses=problems())
async def ready(context: Context) -> Response:
    """Whether requests can be served: looked at once a second. 503 says why not, and names a loop that is stuck."""
    if context.is_stopping:
        raise unavailable("this server is stopping")
    if (fault := context.readiness.fault) is not None:
        raise unavailable(fault)
    if (stuck := context.stuck_loop()) is not None:
        raise unavailable(stuck)
    return answered(Health(status="ready", loops=context.loop_ages()))


@router.get(
    "/metrics",
    dependencies=[Depends(metrics_reader)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems(401)},
)
async def metrics(context: Context) -> Response:
    """For Prometheus, from memory: `metrics_age_seconds` says how old it is."""
    return Response(context.metrics.exposition(), media_type=CONTENT_TYPE)
