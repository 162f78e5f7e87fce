"""Jobs in this worker's hands that an operator asks to stop."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core.queries import Queries
from pgq_core.worker.completer import Completer
from pgq_core.worker.executor import Executor


class StopRequests:
    """Asks for the jobs that have been here since the last look: of short ones there are none, and nothing is asked."""

    def __init__(self, executor: Executor, completer: Completer, queries: Queries, *, worker_id: str) -> None:
        self._executor = executor
        self._completer = completer
        self._queries = queries
        self._worker_id = worker_id
        self._here: set[int] = set()
        self._is_told = False

    def hear(self) -> None:
        """Somebody says that he has just asked for a stop: the next look asks for all jobs."""
        self._is_told = True

    async def look(self, conn: AsyncConnection[Any]) -> None:
        here = self._executor.job_ids()
        candidates = here if self._is_told else here & self._here
        self._here, self._is_told = here, False
        if not candidates:
            return
        statement = self._queries.list_cancel_requests(worker_id=self._worker_id, ids=sorted(candidates))
        requests = set(await statement.fetch_all(conn))
        if requests:
            self._completer.release(self._executor.take_cancelled(requests))
            self._executor.cancel(requests)
