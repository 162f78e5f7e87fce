"""What workers announced about the types they know: the defaults for a producer that does not have the handlers."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from pgq_core.job_queue.flow import Attempt, Flow
from pgq_core.queries import Queries
from pgq_core.queries.enqueues import AnnouncedTypeRow

FRESH_FOR: Final = 30.0
"""Seconds. One small look-up this often costs nothing; a look-up with each enqueue would cost a tenth of it."""


class AnnouncedTypes:
    """The table `job_types`, read at most every 30 s."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._types: dict[str, AnnouncedTypeRow] = {}
        self._stale_at = float("-inf")

    def find(self, job_type: str) -> Flow[AnnouncedTypeRow | None]:
        if self.is_stale():
            yield from self.read()
        return self.known(job_type)

    def known(self, job_type: str) -> AnnouncedTypeRow | None:
        """As last read."""
        return self._types.get(job_type)

    def is_stale(self) -> bool:
        return time.monotonic() >= self._stale_at

    def read(self) -> Flow[None]:
        self._stale_at = time.monotonic() + FRESH_FOR
        try:
            rows: list[AnnouncedTypeRow] = yield Attempt(self._queries.list_announced_types())
        except psycopg.errors.InsufficientPrivilege:
            return  # a producer may have no more than the right to insert: then the general defaults hold
        except psycopg.Error:
            self._stale_at = float("-inf")
            raise
        self._types = {row.name: row for row in rows}
