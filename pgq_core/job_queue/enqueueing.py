"""Enqueueing: from what the caller gave to rows of `jobs`, and what to answer when a key is taken already."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

import psycopg

from pgq_core.database import first_line
from pgq_core.domain.enqueue import (
    JobSettings,
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
from pgq_core.job_queue.batch import Batch, Checked
from pgq_core.job_queue.flow import Attempt, Flow, Held, Pause, Quick
from pgq_core.job_queue.request import EnqueuedJob, JobRequest
from pgq_core.queries import Queries
from pgq_core.queries.enqueues import EnqueuedRow, array_of_numbers
from pgq_core.traces import find_tracing

_TYPE_AND_DATA = 2
_MOST_PLAIN = 1024
_KINDS = (str, Handler)
MAX_ROUNDS: Final = 25
"""How often an insert whose key changes hands meanwhile is repeated."""
_SPURNED = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


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
        self._plain: dict[object, Checked] = {}
        """What requests come to that give nothing but a type and its data, by handler or type: nearly all do."""

    def enqueue(self, request: JobRequest) -> Flow[EnqueuedJob]:
        """Checks all before anything is sent."""
        checked = self._checked_once(request) if _is_plain(request) else self._checked(request)
        data = self._encoded(checked.handler, request.data)
        key = None if request.idempotency_key is None else checked_key(request.idempotency_key)
        if checked.handler is None and self._announced.is_stale():
            yield from self._announced.read()
        job = NewJob(checked.job_type, data, idempotency_key=key, **self._settings(checked)._asdict())
        tracing = find_tracing()
        if tracing is None:
            return (yield from self._enqueued(job))
        with tracing.enqueueing([job]) as sending:
            answer = yield from self._enqueued(sending.jobs[0])
            sending.answered([answer.id], created=int(answer.created))
        return answer

    def _enqueued(self, job: NewJob) -> Flow[EnqueuedJob]:
        if job.idempotency_key is None:
            ids: list[int] = yield Quick(self._queries.enqueue_job(job))
            return EnqueuedJob(ids[0], created=True)
        (answer,) = yield from self._inserted([job])
        if answer.conflict:
            raise KeyConflict(job.idempotency_key, answer.id)
        return answer

    def enqueue_many(self, requests: Iterable[JobRequest | tuple[Any, object]]) -> Flow[list[EnqueuedJob]]:
        batch = self._batch(requests)
        if not batch.data:
            return []
        if self._announced.is_stale() and any(shape.handler is None for shape in batch.shapes):
            yield from self._announced.read()
        settings = [self._settings(shape) for shape in batch.shapes]
        tracing = find_tracing()
        if tracing is not None:
            with tracing.enqueueing(batch.jobs(settings)) as sending:
                answers = yield from self._inserted(sending.jobs)
                sending.answered([answer.id for answer in answers], created=sum(answer.created for answer in answers))
            return answers
        if batch.has_keys or settings.count(settings[0]) < len(settings):
            return (yield from self._inserted(batch.jobs(settings)))
        (ids,) = yield Quick(self._queries.enqueue_alike_jobs(settings[0], batch.payloads()))
        return [EnqueuedJob(id, True) for id in array_of_numbers(ids)]  # noqa: A001  # positions: it is done per job

    def _batch(self, requests: Iterable[JobRequest | tuple[Any, object]]) -> Batch:
        if isinstance(requests, (str, bytes, bytearray, Mapping)) or not isinstance(requests, Iterable):
            raise InvalidJob("items", f"a {type(requests).__name__} is no list of jobs")
        batch = Batch(self._checked)
        number = -1
        try:
            for number, item in enumerate(requests):  # noqa: B007  # the error's
                if type(item) is tuple and len(item) == _TYPE_AND_DATA:
                    shape, data, key = batch.shape_of_type(item[0]), item[1], None
                else:
                    request = item if isinstance(item, JobRequest) else _request_of(item)
                    shape, data, key = batch.shape_of_request(request), request.data, request.idempotency_key
                batch.data.append(self._encoded(batch.shapes[shape].handler, data))
                batch.shape_of.append(shape)
                if key is not None:
                    batch.has_keys = True
                    key = checked_key(key)
                batch.keys.append(key)
        except (InvalidPayload, InvalidJob) as error:
            raise _of_item(number, error) from error
        return batch

    def _encoded(self, handler: Handler[..., Any] | None, data: object) -> bytes:
        if data is None:
            data = {}
        if handler is None:
            return encode(data, max_bytes=self._max_bytes)
        return handler.encode(data, max_bytes=self._max_bytes)

    def _checked_once(self, request: JobRequest) -> Checked:
        kind = request.type
        if isinstance(kind, str):
            kind = self._registry.get(kind) or kind
        known = self._plain.get(kind)
        if known is None:
            known = self._checked(request)
            if len(self._plain) < _MOST_PLAIN:
                self._plain[kind] = known
        return known

    def _checked(self, request: JobRequest) -> Checked:
        """All but data and key."""
        job_type, handler = self._kind(request.type)
        delay, not_before = None, None
        if request.delay is not None or request.not_before is not None:
            delay, not_before = checked_start(request.delay, request.not_before)
        max_attempts = None if request.max_attempts is None else checked_max_attempts(request.max_attempts)
        return Checked(
            handler,
            job_type,
            None if request.queue is None else checked_name("queue", request.queue),
            max_attempts,
            JobSettings(
                DEFAULT_QUEUE,
                self._max_attempts,
                checked_priority(request.priority),
                delay,
                not_before,
                None if request.timeout is None else checked_timeout(request.timeout),
                None if request.trace_context is None else checked_trace_context(request.trace_context),
            ),
        )

    def _kind(self, given: object) -> tuple[str, Handler[..., Any] | None]:
        if isinstance(given, Handler):
            return given.type, given
        job_type = checked_name("type", given)  # before it is looked up: not everything can be
        return job_type, self._registry.get(job_type)

    def _settings(self, checked: Checked) -> JobSettings:
        """The caller's word wins over the handler's, that over the general one."""
        says = checked.handler or self._announced.known(checked.job_type)
        settings = checked.settings
        if says is None and checked.queue is None and checked.max_attempts is None:
            return settings
        return settings._replace(
            queue=checked.queue or (says and says.queue) or DEFAULT_QUEUE,
            max_attempts=checked.max_attempts or (says and says.max_attempts) or self._max_attempts,
            timeout=settings.timeout if settings.timeout is not None or says is None else says.timeout,
        )

    def _inserted(self, jobs: list[NewJob]) -> Flow[list[EnqueuedJob]]:
        """Inserts, and repeats for items whose key was in another transaction's hands: ended, or not visible yet."""
        answers: dict[int, EnqueuedJob] = {}
        left = list(range(len(jobs)))
        reason = ""
        for round_number in range(MAX_ROUNDS):
            if round_number > 1:
                yield Pause(random.uniform(0, 0.002 * round_number))  # noqa: S311 - spreads competitors, no secret
            statement = self._queries.enqueue_jobs([jobs[number] for number in left])
            keyed = any(jobs[number].idempotency_key is not None for number in left)
            try:
                rows: list[EnqueuedRow] = yield Attempt(statement) if keyed else statement
            except _SPURNED as error:
                if isinstance(error, psycopg.errors.DeadlockDetected) and (yield Held()):
                    # Its other keys stay locked: each repetition would meet the same deadlock a deadlock_timeout later.
                    raise _deadlocked(error) from error
                reason = f"; the last time: {first_line(error)}"
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
            f"an idempotency key changed hands {MAX_ROUNDS} times while it was asked for{reason}", sqlstate="40001"
        )


def _deadlocked(error: psycopg.Error) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"{first_line(error)} with another transaction over idempotency keys; roll yours back and repeat it",
        sqlstate=error.sqlstate,
    )


def _request_of(item: object) -> JobRequest:
    """Text and mappings could be taken apart too, into what nobody meant."""
    if not isinstance(item, (tuple, list)):
        raise InvalidJob("", f"a {type(item).__name__} is neither a JobRequest nor a pair of type and data")
    if len(item) != _TYPE_AND_DATA:
        raise InvalidJob("", f"a {type(item).__name__} of {len(item)} is no pair of type and data")
    return JobRequest(*item)


def _is_plain(request: JobRequest) -> bool:
    return (
        request.queue is None
        and request.delay is None
        and request.not_before is None
        and request.max_attempts is None
        and request.timeout is None
        and request.trace_context is None
        and type(request.priority) is int
        and request.priority == 0
        and type(request.type) in _KINDS
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
            return InvalidJob((where + error.field).removesuffix("."), error.reason)
