"""An AsyncJobQueue that a test can look into, work off and send through time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pgq_core.handlers import Handler, Registry, Resources, default_registry
from pgq_core.job_queue import AsyncJobQueue, EnqueuedJob, JobRequest
from pgq_core.job_queue.foreign import CallersConnection
from pgq_core.queries import Queries, Statement
from pgq_core.testing.draining import (
    MOST_RUNS,
    DrainedRun,
    Draining,
    Returned,
    Step,
    raise_first_error,
    run_plain,
    run_within_limit,
)
from pgq_core.testing.probe import Probe
from pgq_core.worker.attempt import Attempt
from pgq_core.worker.calls import Calls
from pgq_core.worker.transactional import JobTransactions


class AsyncQueueUnderTest(AsyncJobQueue, Probe):
    """QueueUnderTest for one event loop: coroutine handlers run in the test's own loop, plain ones in a thread.

    `drain` is awaited; looking (`enqueued`, `assert_enqueued`) and `travel` are plain calls.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str,
        registry: Registry | None = None,
        resources: Resources | None = None,
        jitter: float = 1.0,
        **options: Any,  # noqa: ANN401 - those of AsyncJobQueue
    ) -> None:
        AsyncJobQueue.__init__(self, dsn, schema=schema, registry=registry, **options)
        Probe.__init__(self, dsn, schema)
        self.registry = default_registry if registry is None else registry
        self.jitter = jitter
        self._resources: Resources = {} if resources is None else resources
        self._has_resources = resources is not None
        self._has_started = False
        self._is_inline = False
        self._raises_inline = True
        self._transactions = JobTransactions(dsn, Queries(schema), worker_id="testing", slot=0)

    async def enqueue(
        self,
        job_type: Handler[..., Any] | str,
        data: object = None,
        *,
        conn: CallersConnection | None = None,
        **options: Any,  # noqa: ANN401 - those of AsyncJobQueue
    ) -> EnqueuedJob:
        """As AsyncJobQueue.enqueue; inside `run_inline` the job has run then, unless `conn` holds it back."""
        answer = await super().enqueue(job_type, data, conn=conn, **options)
        await self._drain_inline(conn)
        return answer

    async def enqueue_many(
        self,
        items: Iterable[JobRequest | tuple[Handler[..., Any] | str, object]],
        *,
        conn: CallersConnection | None = None,
    ) -> list[EnqueuedJob]:
        answers = await super().enqueue_many(items, conn=conn)
        await self._drain_inline(conn)
        return answers

    @contextlib.contextmanager
    def run_inline(self, *, raise_errors: bool = True) -> Iterator[None]:
        """In the block an enqueue runs what is due at once, and raises what a handler raised, after it was recorded."""
        before = self._is_inline, self._raises_inline
        self._is_inline, self._raises_inline = True, raise_errors
        try:
            yield
        finally:
            self._is_inline, self._raises_inline = before

    async def drain(
        self, queue: str | None = None, *, limit: int = MOST_RUNS, raise_errors: bool = False
    ) -> list[DrainedRun]:
        """As QueueUnderTest.drain."""
        if not self._has_resources and not self._has_started:
            self._has_started = True
            await self.registry.start(self._resources)
        draining = Draining(self.schema, self.registry, self._transactions, self._resources, jitter=self.jitter)
        flow = draining.drain(queue, limit)
        try:
            step = next(flow)
            while True:
                step = flow.send(await self._done(step, draining.calls))
        except StopIteration as end:
            runs: list[DrainedRun] = end.value
        if raise_errors:
            raise_first_error(runs)
        return runs

    async def close(self) -> None:
        if self._has_started:
            await self.registry.stop(self._resources)
        await self._transactions.close()
        self.stop_looking()
        await super().close()

    async def _done(self, step: Step, calls: Calls) -> list[Any] | Returned:
        match step:
            case Statement():
                return await self._fetch(step, None)
            case Attempt():
                if step.handler.is_async or calls.wraps:
                    return await run_within_limit(calls, step)
                return await asyncio.to_thread(run_plain, calls, step)

    async def _drain_inline(self, conn: CallersConnection | None) -> None:
        if self._is_inline and conn is None:
            await self.drain(raise_errors=self._raises_inline)
