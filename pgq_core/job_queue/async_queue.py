"""The queue for asynchronous code: the same verbs, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar, assert_never

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from pgq_core.domain.enqueue import checked_max_connections
from pgq_core.domain.job import JSON, Job
from pgq_core.handlers import Handler, Registry
from pgq_core.job_queue.answers import CancelAnswer, FailedJob, JobReport, Lease
from pgq_core.job_queue.claiming import DEFAULT_LEASE
from pgq_core.job_queue.connections import AsyncConnections
from pgq_core.job_queue.flow import Attempt, Flow, Held, Pause, Quick, Step
from pgq_core.job_queue.foreign import CallersConnection, async_driver_connection
from pgq_core.job_queue.request import EnqueuedJob, JobRequest
from pgq_core.job_queue.target import Target
from pgq_core.job_queue.translation import explained
from pgq_core.job_queue.verbs import MAX_CONNECTIONS, TIMEOUT, Verbs
from pgq_core.queries import Statement

T = TypeVar("T")


class AsyncJobQueue:
    """JobQueue for one event loop; every verb is a coroutine.

    `schema`: where the tables are (default: `PGQ_SCHEMA`, else `pgq_core`). `registry`: whose handlers' defaults and
    models count (default: the one of the bare decorators). `timeout`: longest wait in seconds for a connection and for
    a statement; a server that says nothing is given up five seconds later. `prepare=False`: for a pooler in transaction
    mode. Calls raise DatabaseUnavailable when the server cannot serve; an enqueue may then have been stored or not, and
    is safe to repeat with an idempotency key.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str | None = None,
        registry: Registry | None = None,
        max_connections: int = MAX_CONNECTIONS,
        timeout: float = TIMEOUT,
        prepare: bool = True,
        max_attempts: int | None = None,
        max_payload: int | None = None,
        application_name: str = "pgq queue",
    ) -> None:
        self._verbs = Verbs(schema, registry, max_attempts=max_attempts, max_payload=max_payload)
        self._may_prepare = prepare
        self._connections = AsyncConnections(
            Target.checked(dsn, self._verbs.schema, application_name, prepare=prepare, timeout=timeout),
            max_size=checked_max_connections(max_connections),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; later calls raise QueueClosed."""
        await self._connections.close()

    async def enqueue(
        self,
        job_type: Handler[..., Any] | str,
        data: object = None,
        *,
        queue: str | None = None,
        priority: int = 0,
        delay: timedelta | float | None = None,
        not_before: datetime | None = None,
        idempotency_key: str | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | float | None = None,
        trace_context: JSON = None,
        conn: CallersConnection | None = None,
    ) -> EnqueuedJob:
        """Adds one job; `data` None counts as `{}`. With `conn` it joins the caller's transaction.

        `conn`: psycopg's connection, or what SQLAlchemy (connection, session) or Django (`connection`) has over one.

        A key that is taken by the same payload and queue answers that job (`created` False), by another one raises
        KeyConflict. InvalidPayload, MalformedData and InvalidJob say what was refused, before anything is sent.
        """
        request = JobRequest(
            job_type,
            data,
            queue=queue,
            priority=priority,
            delay=delay,
            not_before=not_before,
            idempotency_key=idempotency_key,
            max_attempts=max_attempts,
            timeout=timeout,
            trace_context=trace_context,
        )
        return await self._run(self._verbs.enqueueing.enqueue(request), conn)

    async def enqueue_many(
        self,
        items: Iterable[JobRequest | tuple[Handler[..., Any] | str, object]],
        *,
        conn: CallersConnection | None = None,
    ) -> list[EnqueuedJob]:
        """Adds a batch in one round trip, all or none. Answers per item, in input order: new, existing, or a conflict.

        An invalid item refuses the whole batch before anything is sent; the error names it (`items[3].data.total`).
        """
        return await self._run(self._verbs.enqueueing.enqueue_many(items), conn)

    async def claim(
        self,
        queue: str = "default",
        limit: int = 1,
        *,
        lease: timedelta | float = DEFAULT_LEASE,
        worker_id: str | None = None,
        job_types: Sequence[str] | None = None,
    ) -> list[Job]:
        """Takes up to `limit` due jobs for a loop of the caller's own: highest priority first.

        Each is the caller's until its lease ends: `extend` it, and end it by `complete`, `fail` or `release`.
        """
        flow = self._verbs.claiming.claim(queue, limit=limit, lease=lease, worker_id=worker_id, job_types=job_types)
        return await self._run(flow)

    async def extend(self, job: Job, lease: timedelta | float = DEFAULT_LEASE) -> Lease:
        """Renews a claim from now on. Raises ClaimLost when it is no longer the caller's."""
        return await self._run(self._verbs.claiming.extend(job, lease=lease))

    async def complete(self, job: Job, result: object = None, *, conn: CallersConnection | None = None) -> None:
        """Ends a claimed job well; with `conn` together with the caller's own writes. Raises ClaimLost.

        A result that is no JSON leaves a note in its place and does not fail the job.
        """
        await self._run(self._verbs.claiming.complete(job, result), conn)

    async def fail(
        self,
        job: Job,
        error: BaseException | str,
        *,
        retryable: bool = True,
        delay: timedelta | float | None = None,
    ) -> FailedJob:
        """Ends an attempt badly: back to its queue after `delay` (default: backoff), or to the dead letters.

        Raises ClaimLost.
        """
        return await self._run(self._verbs.claiming.fail(job, error, retryable=retryable, delay=delay))

    async def release(self, job: Job) -> None:
        """Hands a claimed job back, no attempt spent. Raises ClaimLost."""
        await self._run(self._verbs.claiming.release(job))

    async def cancel(self, job_id: int) -> CancelAnswer:
        """Ends a job that does not run; asks the worker of one that does. Raises JobNotFound."""
        return await self._run(self._verbs.following.cancel(job_id))

    async def get(self, job_id: int, *, conn: CallersConnection | None = None) -> JobReport:
        """What is known of a job, in every state, also after its row left `jobs`. Raises JobNotFound."""
        return await self._run(self._verbs.following.get(job_id), conn)

    async def result(self, job_id: int, timeout: float | None = None) -> JSON:
        """Waits for the job's end and answers what its handler returned.

        Raises JobFailed when it ended otherwise, ResultNotReady after `timeout` seconds, JobNotFound.
        """
        return await self._run(self._verbs.following.result(job_id, timeout))

    async def _run(self, flow: Flow[T], conn: CallersConnection | None = None) -> T:
        if conn is not None and not isinstance(conn, AsyncConnection):
            conn = await async_driver_connection(conn)
        try:
            step = next(flow)
            while True:
                try:
                    rows = await self._perform(step, conn)
                except psycopg.Error as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(rows)
        except StopIteration as end:
            answer: T = end.value
            return answer
        except psycopg.Error as error:
            raise explained(error, schema=self._verbs.schema, is_own_connection=conn is None) from error

    async def _perform(self, step: Step, conn: AsyncConnection[Any] | None) -> list[Any] | bool | None:
        match step:
            case Quick(statement):
                return await self._fetch_quickly(statement) if conn is None else await self._fetch(statement, conn)
            case Pause(seconds):
                await asyncio.sleep(seconds)
                return None
            case Held():
                return conn is not None and conn.info.transaction_status != TransactionStatus.IDLE
            case Attempt(statement) if conn is not None:
                return await _attempt(statement, conn)
            case Attempt(statement) | (Statement() as statement):
                return await self._fetch(statement, conn)
            case _:
                assert_never(step)

    async def _fetch_quickly(self, statement: Statement[Any]) -> list[Any]:
        own = await self._connections.take()
        try:
            if self._may_prepare and own.wire.speaks_utf8:
                return await own.wire.run_async(own, statement, self._verbs.schema)
            return await statement.fetch_all(own)
        except psycopg.errors.ReadOnlySqlTransaction:
            self._connections.distrust_all()
            raise
        finally:
            await self._connections.give_back(own)

    async def _fetch(self, statement: Statement[Any], conn: AsyncConnection[Any] | None) -> list[Any]:
        if conn is not None:
            return await statement.fetch_all(conn)
        own = await self._connections.take()
        try:
            return await statement.fetch_all(own)
        except psycopg.errors.ReadOnlySqlTransaction:
            self._connections.distrust_all()
            raise
        finally:
            await self._connections.give_back(own)


async def _attempt(statement: Statement[Any], conn: AsyncConnection[Any]) -> list[Any]:
    """Leaves the caller's transaction usable when the statement fails."""
    status = conn.info.transaction_status
    if status == TransactionStatus.INTRANS:
        async with conn.transaction():
            return await statement.fetch_all(conn)
    try:
        return await statement.fetch_all(conn)
    except psycopg.Error:
        if status == TransactionStatus.IDLE:  # our own statement began the transaction: there is nothing else in it
            await conn.rollback()
        raise
