"""Claims row by row, where somebody's trigger or policy refuses the claim of one of the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries import Queries
from pgq_core.queries.claims import ClaimedRow
from pgq_core.queries.piecemeal import PASSED_BY_FOR, PassedBy, write_what_can_be

AT_ONCE: Final = 100


class CarefulClaims:
    """`passed_by`: the jobs that were refused, which a claim of many leaves out."""

    def __init__(self, queries: Queries, *, worker_id: str, job_types: Sequence[str]) -> None:
        self._queries = queries
        self._worker_id = worker_id
        self._job_types = list(job_types)
        self._logger = get_logger("pgq.worker", worker_id=worker_id)
        self._trouble = RepeatedTrouble(self._logger)
        self.passed_by = PassedBy()

    async def claim(
        self, conn: AsyncConnection[Any], queues: Sequence[str], limit: int, refusal: psycopg.Error, *, suspect: bool
    ) -> list[ClaimedRow]:
        """In claim order. Nothing any more where it is not about single jobs."""
        if self.passed_by.is_full():
            self._trouble.say("jobs_not_claimed", refusal, queues=list(queues))
            return []
        rows: list[ClaimedRow] = []

        async def write(ids: Sequence[int]) -> None:
            rows.extend(await self._queries.claim_listed_jobs(ids, worker_id=self._worker_id).fetch_all(conn))

        async with conn.transaction():
            claimable = self._queries.list_claimable_jobs(
                queues=queues,
                job_types=self._job_types,
                suspect=suspect,
                limit=min(limit, AT_ONCE),
                except_jobs=self.passed_by.ids(),
            )
            ids = (await claimable.fetch_all(conn))[:limit]
            refused = await write_what_can_be(conn, ids, write, has_partitions=True)
        for job_id, error in refused:
            self.passed_by.add(job_id)
            self._logger.error("job_not_claimed", job_id=job_id, error=first_line(error), again_in=PASSED_BY_FOR)
        places = {job_id: place for place, job_id in enumerate(ids)}
        return sorted(rows, key=lambda row: places[row.id])
