"""Enqueueing: from what the caller gave to rows of `jobs`, and what to answer when a key is taken already."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, NamedTuple

import psycopg

from pgq_core.domain.enqueue import (
    NewJob,
    checked_key,
    checked_max_attempts,
    checked_name,
    checked_priority,
    checked_start,
    checked_timeout,
    checked_trace_context,
)
from pgq_core.domain.job import DEFAULT_QUEUE
from pgq_core.domain.payload import encode
from pgq_core.errors import DatabaseUnavailable, InvalidJob, InvalidPayload, KeyConflict, MalformedData
from pgq_core.handlers import Handler, Registry
from pgq_core.job_queue.announced import AnnouncedTypes
from pgq_core.job_queue.flow import Attempt, Flow, Pause
from pgq_core.job_queue.request import EnqueuedJob, JobRequest
from pgq_core.queries import Queries
from pgq_core.queries.enqueues import EnqueuedRow
from pgq_core.traces import find_tracing

MAX_ROUNDS: Final = 25
"""How often an insert whose key changes hands meanwhile is repeated."""
_SPURNED = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Defaults(NamedTuple):
    """What a handler, or the announcement of one, says about its type."""

    queue: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None


class Enqueueing:
    """The verbs enqueue and enqueue_many."""

    def __init__(
        self, queries: Queries, announced: AnnouncedTypes, registry: Registry, *, max_attempts: int, max_bytes: int
    ) -> None:
        self._queries = queries
        self._announced = announced
        self._registry = registry
        self._max_attempts = max_attempts
        self._max_bytes = max_bytes

    def enqueue(self, request: JobRequest) -> Flow[EnqueuedJob]:
        job = yield from self._prepared(request)
        tracing = find_tracing()
        if tracing is None:
            return (yield from self._enqueued(job))
        with tracing.enqueueing([job]) as sending:
            answer = yield from self._enqueued(sending.jobs[0])
            sending.answered([answer.id], created=int(answer.created))
        return answer

    def _enqueued(self, job: NewJob) -> Flow[EnqueuedJob]:
        if job.idempotency_key is None:
            ids: list[int] = yield self._queries.enqueue_job(job)
            return EnqueuedJob(ids[0], created=True)
        (answer,) = yield from self._inserted([job])
        if answer.conflict:
            raise KeyConflict(job.idempotency_key, answer.id)
        return answer

    def enqueue_many(self, requests: Iterable[JobRequest | tuple[Any, object]]) -> Flow[list[EnqueuedJob]]:
        jobs = []
        for number, item in enumerate(requests):
            request = item if isinstance(item, JobRequest) else JobRequest(*item)
            try:
                jobs.append((yield from self._prepared(request)))
            except (InvalidPayload, InvalidJob) as error:
                raise _of_item(number, error) from error
        if not jobs:
            return []
        tracing = find_tracing()
        if tracing is None:
            return (yield from self._inserted(jobs))
        with tracing.enqueueing(jobs) as sending:
            answers = yield from self._inserted(sending.jobs)
            sending.answered([answer.id for answer in answers], created=sum(answer.created for answer in answers))
        return answers

    def _prepared(self, request: JobRequest) -> Flow[NewJob]:
        """Checks all before anything is sent. The caller's word wins over the handler's, that over the general one."""
        handler = self._handler_of(request)
        job_type = handler.type if handler is not None else checked_name("type", request.type)
        data = {} if request.data is None else request.data
        text = (
            encode(data, max_bytes=self._max_bytes)
            if handler is None
            else handler.encode(data, max_bytes=self._max_bytes)
        )
        delay, not_before = checked_start(request.delay, request.not_before)
        defaults = yield from self._defaults(job_type, handler)
        return NewJob(
            job_type=job_type,
            data=text,
            queue=checked_name("queue", request.queue)
            if request.queue is not None
            else defaults.queue or DEFAULT_QUEUE,
            max_attempts=(
                checked_max_attempts(request.max_attempts)
                if request.max_attempts is not None
                else defaults.max_attempts or self._max_attempts
            ),
            priority=checked_priority(request.priority),
            delay=delay,
            not_before=not_before,
            idempotency_key=None if request.idempotency_key is None else checked_key(request.idempotency_key),
            timeout=defaults.timeout if request.timeout is None else checked_timeout(request.timeout),
            trace_context=None if request.trace_context is None else checked_trace_context(request.trace_context),
        )

    def _handler_of(self, request: JobRequest) -> Handler[..., Any] | None:
        if isinstance(request.type, Handler):
            return request.type
        return self._registry.get(request.type)

    def _defaults(self, job_type: str, handler: Handler[..., Any] | None) -> Flow[Defaults]:
        if handler is not None:
            return Defaults(handler.queue, handler.max_attempts, handler.timeout)
        row = yield from self._announced.find(job_type)
        return Defaults() if row is None else Defaults(row.queue, row.max_attempts, row.timeout)

    def _inserted(self, jobs: list[NewJob]) -> Flow[list[EnqueuedJob]]:
        """Inserts, and repeats for items whose key was in another transaction's hands: ended, or not visible yet."""
        answers: dict[int, EnqueuedJob] = {}
        left = list(range(len(jobs)))
        for round_number in range(MAX_ROUNDS):
            if round_number > 1:
                yield Pause(random.uniform(0, 0.002 * round_number))  # noqa: S311 - spreads competitors, no secret
            statement = self._queries.enqueue_jobs([jobs[number] for number in left])
            keyed = any(jobs[number].idempotency_key is not None for number in left)
            try:
                rows: list[EnqueuedRow] = yield Attempt(statement) if keyed else statement
            except _SPURNED:
                continue
            answers |= {
                left[row.position - 1]: EnqueuedJob(row.id, row.created, row.conflict)
                for row in rows
                if row.id is not None
            }
            left = [left[row.position - 1] for row in rows if row.id is None]
            if not left:
                return [answers[number] for number in range(len(jobs))]
        raise DatabaseUnavailable(
            f"an idempotency key changed hands {MAX_ROUNDS} times while it was asked for", sqlstate="40001"
        )


def _of_item(number: int, error: InvalidPayload | InvalidJob) -> InvalidPayload | InvalidJob:
    """The same error, saying which item of the batch it is about."""
    where = f"items[{number}]."
    match error:
        case MalformedData():
            return MalformedData(error.job_type, tuple((where + path, text) for path, text in error.problems))
        case InvalidPayload():
            return InvalidPayload(error.reason, path=where + error.path)
        case InvalidJob():
            return InvalidJob(where + error.field, error.reason)
