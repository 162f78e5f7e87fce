"""Bodies of requests and answers about jobs and queues, as OpenAPI describes them."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, StringConstraints, WithJsonSchema

from pgq_core.domain.audit import Audit
from pgq_core.domain.enqueue import MAX_DELAY, MAX_KEY, MAX_MAX_ATTEMPTS, MAX_NAME, MAX_TIMEOUT
from pgq_core.domain.job import JSON, MAX_PRIORITY, MIN_PRIORITY
from pgq_core.job_queue import CancelAnswer, JobState

LARGEST_ID = 2**63 - 1

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
Reason = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _moment(value: object) -> datetime:
    """ISO 8601 only: pydantic would also take any number for seconds, or milliseconds, since 1970."""
    if isinstance(value, str) and _DATE.match(value):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                return moment
    raise ValueError("has to be an ISO 8601 time with an offset")


def _whole(value: object) -> object:
    """Python's own reading would let `+1`, `1_0` and `1.0` through: one thing would have many addresses."""
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+", value):
        raise ValueError("has to be a whole number")
    return value


IdInPath = Annotated[int, BeforeValidator(_whole), Path(ge=1, le=LARGEST_ID)]
Moment = Annotated[datetime, PlainValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
AnyJson = Annotated[JSON, WithJsonSchema({"description": "Any JSON value."})]


class Body(BaseModel):
    """A request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class EnqueueBody(Body):
    """A job to be added. What is left out comes from what workers announced about the type."""

    type: Name
    data: AnyJson = Field(None, description="What the handler gets; absent or null counts as {}.")
    queue: Name | None = None
    priority: int = Field(0, ge=MIN_PRIORITY, le=MAX_PRIORITY, description="Higher runs first.")
    scheduled_at: Moment | None = Field(None, description="Not before this time, with an offset.")
    delay: float | None = Field(None, ge=0, le=MAX_DELAY.total_seconds(), description="Seconds from now on.")
    idempotency_key: Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY)] | None = None
    max_attempts: int | None = Field(None, ge=1, le=MAX_MAX_ATTEMPTS)
    timeout: float | None = Field(None, ge=0, le=MAX_TIMEOUT.total_seconds(), description="Seconds; 0: no limit.")


class EnqueuedJobAnswer(Answer):
    id: int
    created: bool = Field(description="False: the job that already has the idempotency key.")
    url: str


class RunAnswer(Answer):
    """One closed attempt. `attempt` 0: the job ended without having run."""

    id: int
    attempt: int
    outcome: str
    worker_id: str
    started_at: datetime
    finished_at: datetime
    error: str | None
    error_class: str | None


class DeadLetterOfJob(Answer):
    id: int
    reason: str
    last_error: str
    died_at: datetime
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    replayed_job_id: int | None


class JobAnswer(Answer):
    """All that is known of a job, in whatever state it is."""

    id: int
    state: JobState
    queue: str | None
    type: str | None
    data: AnyJson = Field(
        description="What its handler gets, with secrets masked; null once the job has ended well, or when unreadable."
    )
    priority: int | None
    attempts: int
    max_attempts: int | None
    not_before: datetime | None
    created_at: datetime | None
    idempotency_key: str | None
    locked_by: str | None = Field(description="The worker that runs it.")
    locked_at: datetime | None
    cancel_requested: bool
    last_error: str | None
    result: AnyJson = Field(description="What its handler returned, with secrets masked.")
    finished_at: datetime | None
    runs: list[RunAnswer] = Field(description="The latest 100, oldest first.")
    dead_letter: DeadLetterOfJob | None
    replayed_from: int | None = Field(description="The dead letter that this job is a replay of.")
    follow_up: int | None = Field(description="The job that a replay made of this one.")


class CancelledJob(Answer):
    """`cancelled` is final; `requested`: its worker was asked, the run may still succeed; `ended`: it was over."""

    id: int
    answer: CancelAnswer
    state: JobState
    operation_id: int | None


class CountAnswer(Answer):
    value: int
    exact: bool = Field(description="False: an estimate, or at least so many.")


class QueueAnswer(Answer):
    name: str
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    audit: Audit = Field(description="Which of its runs leave a row in job_runs.")
    audit_sample: float | None = Field(description="The share of plain successes that is kept; null without a sample.")
    pending: CountAnswer
    scheduled: CountAnswer
    retrying: CountAnswer = Field(description="Scheduled ones that failed before.")
    waiting: CountAnswer
    running: int
    capacity: int = Field(description="How many jobs its live workers can run at a time.")
    dead: CountAnswer
    oldest_pending_at: datetime | None
    rate_out: float = Field(description="Runs finished per second over the last minute.")
    rate_in: float | None = Field(description="Derived from depth and outflow.")
    failure_share: float | None
    p50: float | None = Field(description="Duration of runs in seconds, last minute.")
    p95: float | None
    unknown_types: list[str] = Field(description="Types at its front that none of its live workers knows.")


class QueuesAnswer(Answer):
    taken_at: datetime
    queues: list[QueueAnswer]


class ReasonBody(Body):
    reason: Reason | None = Field(None, description="Why, for the audit.")


class AuditBody(ReasonBody):
    """What a queue writes down. Statistics and metrics count every run all the same."""

    audit: Audit = Field(description="Which runs leave a row in job_runs.")
    share: float | None = Field(
        None, gt=0, le=1, description="With `sample`: the share of plain successes that is kept; 0.01 when not said."
    )


class QueueAudit(Answer):
    name: str
    audit: Audit
    audit_sample: float | None = Field(description="The share of plain successes that is kept; null without a sample.")
    operation_id: int | None


class QueueActed(Answer):
    name: str
    paused: bool
    operation_id: int | None


class Health(Answer):
    """`loops`: seconds since the last good turn of each loop in this process."""

    status: str
    loops: dict[str, float] | None = None
