"""How a handler is called: its data, what it wishes to be given, its transaction, the middleware around it."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

from psycopg import AsyncConnection, Connection

from pgq_core.handlers import Registry, Resources
from pgq_core.queries.claims import FinishedJob
from pgq_core.worker.attempt import Attempt, Write
from pgq_core.worker.context import JobContext
from pgq_core.worker.endings import Endings
from pgq_core.worker.transactional import JobTransactions

_SPARE_THREADS: Final = 32
"""For functions that outlive their time limit and keep their thread."""


class Calls:
    """Runs attempts that need more than their data. Answers the write; raises what the handler raised.

    When the job's own transaction has committed the write already, `attempt.is_written` says so.
    """

    def __init__(
        self,
        registry: Registry,
        transactions: JobTransactions,
        endings: Endings,
        resources: Resources,
        *,
        worker_id: str,
        concurrency: int,
    ) -> None:
        self._registry = registry
        self._transactions = transactions
        self._endings = endings
        self._resources = resources
        self._worker_id = worker_id
        self._concurrency = concurrency
        self._pool: ThreadPoolExecutor | None = None
        self.wraps = registry.has_middleware
        """Whether every run, plain functions included, passes through coroutines."""

    def prepare(self, attempt: Attempt) -> object:
        """The handler's first argument; its context too, when it wants one. Raises MalformedData."""
        if "context" in attempt.handler.injected:
            attempt.context = JobContext(attempt.job, self._resources, self._worker_id)
        return attempt.handler.bind(attempt.row.data)

    async def run(self, attempt: Attempt) -> Write:
        """In a coroutine slot."""
        argument = self.prepare(attempt)
        handler = attempt.handler
        if not handler.is_async:
            return await self._run_in_thread(attempt, argument)
        if handler.transactional:
            write = await self._transactions.run(
                lambda conn: self._wrapped(attempt, lambda: self._invoke(attempt, argument, conn)),
                lambda value: self._end(attempt, value),
            )
            return _settled_in_transaction(attempt, write)
        return self._end(attempt, await self._wrapped(attempt, lambda: self._invoke(attempt, argument, None)))

    def run_plain(self, attempt: Attempt) -> Write:
        """In a thread, where no middleware is registered."""
        return self._run_plain(attempt, self.prepare(attempt))[1]

    async def _run_in_thread(self, attempt: Attempt, argument: object) -> Write:
        """A plain function inside middleware. Its transaction, if any, is committed before the middleware goes on."""
        committed: list[Write] = []

        async def call() -> object:
            run = contextvars.copy_context().run
            attempt.future = self._threads().submit(run, self._run_plain, attempt, argument)
            value, write = await asyncio.wrap_future(attempt.future)
            if attempt.is_written:
                committed.append(write)
            return value

        value = await self._wrapped(attempt, call)
        return committed[0] if committed else self._end(attempt, value)

    def _run_plain(self, attempt: Attempt, argument: object) -> tuple[object, Write]:
        handler, returned = attempt.handler, []
        if not handler.transactional:
            value = handler.invoke(argument, job=attempt.job, context=attempt.context)
            return value, self._end(attempt, value)

        def call(conn: Connection[Any]) -> object:
            returned.append(handler.invoke(argument, job=attempt.job, conn=conn, context=attempt.context))
            return returned[0]

        write = self._transactions.run_sync(attempt, call, lambda value: self._end(attempt, value))
        return returned[0], _settled_in_transaction(attempt, write)

    async def _wrapped(self, attempt: Attempt, call: Callable[[], Awaitable[Any]]) -> object:
        return await (self._registry.around(attempt.job, call) if self.wraps else call)()

    def _invoke(self, attempt: Attempt, argument: object, conn: AsyncConnection[Any] | None) -> Awaitable[Any]:
        coroutine = attempt.handler.invoke(argument, job=attempt.job, conn=conn, context=attempt.context)
        return cast(Awaitable[Any], coroutine)  # by Handler.is_async

    def _end(self, attempt: Attempt, value: object) -> Write:
        attempt.finished = time.monotonic()
        return self._endings.of_value(attempt, value)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._concurrency + _SPARE_THREADS, thread_name_prefix="pgq-wrapped")
        return self._pool


def _settled_in_transaction(attempt: Attempt, write: Write) -> Write:
    """A finish is committed; whatever else the handler wished was rolled back and still has to be written."""
    attempt.is_written = isinstance(write, FinishedJob)
    return write
