"""Compares what a worker holds with what the table says it holds, after a connection that claimed was lost.

Its last claim may have got through while the answer did not. The jobs of that claim lie with a worker that knows
nothing of them, and nobody else gives them back while that worker lives.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

from psycopg import AsyncConnection

from pgq_core.logs import get_logger
from pgq_core.queries import Queries
from pgq_core.worker.completer import Completer
from pgq_core.worker.executor import Executor

AGAIN: Final = 60.0
"""Seconds after the loss to the last call: a statement may have been on its way to a server that stood still."""


class RollCall:
    """Two looks a call: a job that ends, or is on its way between two hands, is not missed in both.

    A look goes over claims with newer tokens than the last one whose answer came before the loss: tokens only grow.
    """

    def __init__(
        self, executor: Executor, completer: Completer, queries: Queries, *, worker_id: str, recheck: float
    ) -> None:
        """`recheck`: seconds between the two looks."""
        self._executor = executor
        self._completer = completer
        self._queries = queries
        self._worker_id = worker_id
        self._recheck = recheck
        self._logger = get_logger("pgq.worker", worker_id=worker_id)
        self._answered = 0
        """The token of the last claim whose answer came."""
        self._after = 0
        self._next_at = self._last_at = math.inf
        self._missed: set[tuple[int, int]] = set()
        """Job and token of what the first look did not find here."""
        self._is_second = False

    def answered(self, token: int) -> None:
        """A claim with this token has arrived."""
        self._answered = token

    def lost_touch(self) -> None:
        """An answer may just have got lost."""
        if self._next_at == math.inf:
            self._after = self._answered
        self._next_at = 0.0
        self._last_at = time.monotonic() + AGAIN
        self._is_second = False

    def is_due(self, now: float) -> bool:
        return now >= self._next_at

    async def look(self, conn: AsyncConnection[Any]) -> None:
        """Hands back what both looks missed."""
        claims = await self._queries.list_claims(worker_id=self._worker_id, after=self._after).fetch_all(conn)
        known = self._executor.job_ids() | self._completer.job_ids()
        missed = {(claim.id, claim.claim_token) for claim in claims if claim.id not in known}
        lost = missed & self._missed if self._is_second else set()
        if lost and (count := await self._queries.release_jobs(sorted(lost)).execute(conn)):
            self._logger.warning("claims_without_an_answer_handed_back", count=count)
        self._missed, self._is_second = missed, bool(missed) and not self._is_second
        now = time.monotonic()
        if self._is_second:
            self._next_at = now + self._recheck
        else:
            self._next_at = self._last_at if now < self._last_at else math.inf
