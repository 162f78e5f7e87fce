"""Promotion row by row, where somebody's trigger or policy refuses to let one of the due jobs become pending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.queries import Queries
from pgq_core.queries.piecemeal import PASSED_BY_FOR, PassedBy, write_what_can_be

AT_ONCE: Final = 100


class CarefulPromotion:
    """`passed_by`: the jobs that were refused, which a promotion of many leaves out."""

    def __init__(self, queries: Queries, *, logger_name: str) -> None:
        self._queries = queries
        self._logger = get_logger(logger_name)
        self._trouble = RepeatedTrouble(self._logger)
        self.passed_by = PassedBy()

    async def promote(self, conn: AsyncConnection[Any], queues: Sequence[str], refusal: psycopg.Error) -> int:
        """Answers how many became pending: none any more where it is not about single jobs."""
        if self.passed_by.is_full():
            self._trouble.say("jobs_not_promoted", refusal)
            return 0

        async def write(ids: Sequence[int]) -> None:
            await self._queries.promote_listed_jobs(ids).execute(conn)

        async with conn.transaction():
            due = self._queries.list_due_jobs(queues=queues, limit=AT_ONCE, except_jobs=self.passed_by.ids())
            ids = await due.fetch_all(conn)
            refused = await write_what_can_be(conn, ids, write, has_partitions=True)
        for job_id, error in refused:
            self.passed_by.add(job_id)
            self._logger.error("job_not_promoted", job_id=job_id, error=first_line(error), again_in=PASSED_BY_FOR)
        return len(ids) - len(refused)
