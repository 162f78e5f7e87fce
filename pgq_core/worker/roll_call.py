"""Compares what a worker holds with what the table says it holds.

A claim may have got through while its answer got lost with the connection, and a row may have been given to this worker
by hand, or its claim token changed. Such jobs lie with a worker that knows nothing of them, and nobody else gives them
back while that worker lives.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.logs import get_logger
from pgq_core.queries import Queries
from pgq_core.worker.completer import Completer
from pgq_core.worker.executor import Executor

AGAIN: Final = 60.0
"""Seconds after the loss to the last call: a statement may have been on its way to a server that stood still."""


RESTS: Final = 200.0
"""Times as long as a call over all claims took: so long a rest is the least before the next."""


class RollCall:
    """Two looks a call: a job that ends, or is on its way between two hands, is not missed in both.

    After a loss a look goes over claims with newer tokens than the last one whose answer came: tokens only grow. Behind
    a snapshot that is held for long the whole look is dear, and so it is rare.
    """

    def __init__(
        self,
        executor: Executor,
        completer: Completer,
        queries: Queries,
        *,
        worker_id: str,
        recheck: float,
        whole_every: float,
    ) -> None:
        """`recheck`: seconds between the two looks. `whole_every`: least seconds between two calls over all claims."""
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
        self._whole_every = whole_every
        self._whole_at = time.monotonic() + whole_every
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
        if now >= self._whole_at:
            self._whole_at = math.inf
            self._after = 0
            self._next_at = min(self._next_at, now)
        return now >= self._next_at

    async def look(self, conn: AsyncConnection[Any]) -> None:
        """Hands back what both looks missed."""
        began = time.monotonic()
        claims = await self._queries.list_claims(worker_id=self._worker_id, after=self._after).fetch_all(conn)
        if self._whole_at == math.inf:
            now = time.monotonic()
            self._whole_at = now + max(self._whole_every, RESTS * (now - began))
        known = self._executor.job_ids() | self._completer.job_ids()
        missed = {(claim.id, claim.claim_token) for claim in claims if claim.id not in known}
        lost = missed & self._missed if self._is_second else set()
        if lost:
            await self._hand_back(conn, sorted(lost))
        self._missed, self._is_second = missed, bool(missed) and not self._is_second
        now = time.monotonic()
        if self._is_second:
            self._next_at = now + self._recheck
        else:
            self._next_at = self._last_at if now < self._last_at else math.inf

    async def _hand_back(self, conn: AsyncConnection[Any], claims: list[tuple[int, int]]) -> None:
        try:
            count = await self._queries.release_jobs(claims).execute(conn)
        except psycopg.errors.LockNotAvailable:
            return  # the next call finds them again
        if count:
            ids = [job_id for job_id, _ in claims]
            self._logger.warning("unknown_claims_handed_back", count=count, job_ids=ids[:20])
