"""How jobs of many requests get into the database: together, when they come faster than statements end."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from dataclasses import dataclass
from typing import Final

from pgq_core.api.connections import Connections
from pgq_core.api.patience import Patience
from pgq_core.database import is_transient
from pgq_core.job_queue import AsyncJobQueue, EnqueuedJob, JobRequest

_LANES: Final = 3
"""Statements under way at a time. More would make batches smaller, fewer would let a lone request wait for a commit."""
_MOST: Final = 100
_MOST_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: JobRequest
    size: int
    answer: asyncio.Future[EnqueuedJob]


class Intake:
    """A request that finds a lane free goes at once and alone; those that come meanwhile share the next statement.

    Jobs with an idempotency key always go alone: they may have to wait for another transaction that holds the key, and
    nobody shall wait for a stranger's key.
    """

    def __init__(self, queue: AsyncJobQueue, connections: Connections, patience: Patience) -> None:
        self._queue = queue
        self._connections = connections
        self._patience = patience
        self._waiting: deque[_Waiting] = deque()
        self._lanes: set[asyncio.Task[None]] = set()

    async def add(self, request: JobRequest, *, size: int) -> EnqueuedJob:
        """Once the job is stored. `size`: about how many bytes it has. Raises as `AsyncJobQueue.enqueue` does."""
        if request.idempotency_key is not None:
            return await self._one(request)
        waiting = _Waiting(request, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if len(self._lanes) < _LANES:
            # Nothing of the request that happens to open it, such as its trace, is passed on to those that follow.
            lane = asyncio.create_task(self._work(), context=contextvars.Context())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await waiting.answer

    async def _work(self) -> None:
        while batch := self._taken():
            await self._serve(batch)

    def _taken(self) -> list[_Waiting]:
        """Those who have given up meanwhile are left out."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < _MOST and (not batch or size + self._waiting[0].size <= _MOST_BYTES):
            waiting = self._waiting.popleft()
            if not waiting.answer.done():
                batch.append(waiting)
                size += waiting.size
        return batch

    async def _serve(self, batch: list[_Waiting]) -> None:
        try:
            # As a task that is given up in time: a server that has fallen silent must not hold the lane.
            answers = await self._patience.run(self._stored([waiting.request for waiting in batch]))
        except Exception as error:  # noqa: BLE001 - handed to those who asked, as it would be if each had gone alone
            if len(batch) == 1 or is_transient(error):
                _refuse(batch, error)
            else:
                # Nothing was stored. Each alone, so that one that cannot be stored keeps no other from it.
                for waiting in batch:
                    await self._serve([waiting])
        except BaseException as error:
            _refuse(batch, error)
            raise
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)

    async def _stored(self, requests: list[JobRequest]) -> list[EnqueuedJob]:
        if len(requests) == 1:
            return [await self._one(requests[0])]
        async with self._connections.connection() as conn:
            return await self._queue.enqueue_many(requests, conn=conn)

    async def _one(self, request: JobRequest) -> EnqueuedJob:
        async with self._connections.connection() as conn:
            return await self._queue.enqueue(
                request.type,
                request.data,
                queue=request.queue,
                priority=request.priority,
                delay=request.delay,
                not_before=request.not_before,
                idempotency_key=request.idempotency_key,
                max_attempts=request.max_attempts,
                timeout=request.timeout,
                trace_context=request.trace_context,
                conn=conn,
            )


def _refuse(batch: list[_Waiting], error: BaseException) -> None:
    for waiting in batch:
        if waiting.answer.done():
            continue
        if isinstance(error, Exception):
            waiting.answer.set_exception(error)
        else:
            waiting.answer.cancel()
