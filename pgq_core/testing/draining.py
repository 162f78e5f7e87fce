"""Works a queue off inside the test: the statements, the calls and the decisions are those of a worker."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from pgq_core.domain.job import JSON, Job, Outcome
from pgq_core.domain.outcome import HandlerWish
from pgq_core.domain.payload import decode_any
from pgq_core.handlers import Registry, Resources
from pgq_core.queries import Queries, Statement
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.testing.jitter import FixedJitter
from pgq_core.testing.statements import TestingStatements
from pgq_core.worker.attempt import Attempt, SpelledOut, Verdict, Write
from pgq_core.worker.calls import Calls
from pgq_core.worker.clock import DatabaseClock
from pgq_core.worker.endings import Endings
from pgq_core.worker.traces import traced_registry
from pgq_core.worker.transactional import HandlersOwn, JobTransactions, NotOurs, is_infrastructure

MOST_RUNS: Final = 1000
"""More than this in one drain: its jobs probably enqueue each other without end."""
_LEASE: Final = timedelta(hours=1)
_SLOT: Final = 0


@dataclass(frozen=True, slots=True)
class DrainedRun:
    """One attempt. `error`: what its handler raised; `retry_in`: seconds until it is due again."""

    job: Job
    outcome: str
    error: Exception | None = None
    result: JSON = None
    retry_in: float | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """How an attempt ended: with a write, or with an exception that still has to be judged."""

    write: Write | None
    error: Exception | None = None


Step: TypeAlias = Statement[Any] | Attempt
Drain: TypeAlias = Generator[Step, Any, list[DrainedRun]]
"""Is sent the rows after a statement, and a Returned after an attempt."""


class DrainedTooLong(AssertionError):
    """The queue did not become idle."""

    def __init__(self, runs: int, job_type: str) -> None:
        super().__init__(
            f"{runs} jobs ran and there are still more (the last was {job_type!r}): do they enqueue each other?"
        )


class Draining:
    """One job after the other, by priority and due time, queue by queue, until nothing more is due."""

    def __init__(
        self, schema: str, registry: Registry, transactions: JobTransactions, resources: Resources, *, jitter: float
    ) -> None:
        self._queries = Queries(schema)
        self._statements = TestingStatements(schema)
        self._clock = DatabaseClock()
        self._worker_id = f"testing-{secrets.token_hex(4)}"
        self._registry = traced_registry(registry, self._clock, self._worker_id, flushes=False)
        self._endings = Endings(self._worker_id, self._clock, FixedJitter(jitter))
        self.calls = Calls(
            self._registry, transactions, self._endings, resources, worker_id=self._worker_id, concurrency=1
        )

    def drain(self, queue: str | None, limit: int) -> Drain:
        runs: list[DrainedRun] = []
        while True:
            queues: list[str] = [queue] if queue is not None else (yield self._statements.list_queues())
            yield self._queries.promote_due_jobs(queues=queues, limit=limit, except_worker=self._worker_id)
            before = len(runs)
            for name in queues:
                yield from self._drain_queue(name, runs, limit)
            if len(runs) == before:
                return runs

    def _drain_queue(self, queue: str, runs: list[DrainedRun], limit: int) -> Generator[Step, Any, None]:
        while True:
            rows: list[ClaimedRow] = yield self._queries.claim_jobs(
                queue=queue,
                worker_id=self._worker_id,
                limit=1,
                job_types=self._registry.types,
                lease=_LEASE,
            )
            if not rows:
                return
            runs.append((yield from self._run(rows[0])))
            if len(runs) > limit:
                raise DrainedTooLong(limit, rows[0].job_type)

    def _run(self, row: ClaimedRow) -> Generator[Step, Any, DrainedRun]:
        self._clock.set(row.claimed_at)
        handler = self._registry.get(row.job_type)
        if handler is None or row.attempts >= row.max_attempts:
            yield self._written(self._endings.without_run(row))
            return DrainedRun(row.to_job(), Outcome.DEAD)
        wanted = handler.timeout if row.timeout is None else row.timeout
        attempt = Attempt(row, handler, mark=-1, limit=0.0 if wanted is None else wanted.total_seconds())
        attempt.started = time.monotonic()
        returned: Returned = yield attempt
        error = returned.error
        outcome = returned.write if error is None else self._judged(attempt, error)
        write = self._endings.spelled_out(attempt, outcome)
        if write is not None and not attempt.is_written:
            ours: list[Any] = yield self._written(write)
            write = write if ours else None
        return _told(attempt, write, error.error if isinstance(error, HandlersOwn) else error)

    def _judged(self, attempt: Attempt, error: Exception) -> Write | None:
        attempt.finished = time.monotonic()
        if isinstance(error, NotOurs):
            return None
        is_own = isinstance(error, HandlersOwn)
        if isinstance(error, HandlersOwn):
            error = error.error
        if attempt.verdict is Verdict.TIMEOUT:
            return self._endings.of_timeout(attempt)
        if attempt.handler.transactional and not is_own and is_infrastructure(error):
            return self._endings.of_trouble(attempt, error)
        return self._endings.of_error(attempt, error)

    def _written(self, write: SpelledOut) -> Statement[Any]:
        match write:
            case FinishedJob():
                return self._queries.finish_jobs([write], worker_id=self._worker_id, slot=_SLOT)
            case RescheduledJob():
                return self._queries.reschedule_jobs([write], slot=_SLOT)
            case BuriedJob():
                return self._queries.bury_jobs([write], slot=_SLOT)


async def run_within_limit(calls: Calls, attempt: Attempt) -> Returned:
    """A coroutine handler, or any handler inside middleware."""
    try:
        async with asyncio.timeout(attempt.limit or None) as timer:
            return Returned(await calls.run(attempt))
    except Exception as error:  # noqa: BLE001 - whatever a handler raises fails that job and nothing else
        if isinstance(error, TimeoutError) and timer.expired():
            attempt.verdict = Verdict.TIMEOUT
        return Returned(None, error)


def run_plain(calls: Calls, attempt: Attempt) -> Returned:
    """A plain function, in the thread of whoever calls. Its time limit cannot stop it."""
    try:
        return Returned(calls.run_plain(attempt))
    except Exception as error:  # noqa: BLE001 - the same
        return Returned(None, error)


def raise_first_error(runs: list[DrainedRun]) -> None:
    """What a handler raised; not what it wished (a snooze, a cancel), which is an outcome like any other."""
    for run in runs:
        if run.error is not None and not isinstance(run.error, HandlerWish):
            raise run.error


def _told(attempt: Attempt, write: SpelledOut | None, error: Exception | None) -> DrainedRun:
    match write:
        case FinishedJob():
            result = None if write.result is None else decode_any(write.result)
            return DrainedRun(attempt.job, str(write.outcome), error, result)
        case RescheduledJob():
            return DrainedRun(attempt.job, str(write.outcome), error, retry_in=write.delay)
        case BuriedJob():
            return DrainedRun(attempt.job, Outcome.DEAD, error)
        case None:
            return DrainedRun(attempt.job, Outcome.LOST, error)
