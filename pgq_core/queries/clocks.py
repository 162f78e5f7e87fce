"""Statements about the server's clock."""

from __future__ import annotations

from pgq_core.queries.statement import QueryGroup, Statement


class ClockQueries(QueryGroup):
    def read_clock(self) -> Statement[float]:
        return self._statement("read_clock", float)

    def pull_back_beats(self) -> Statement[None]:
        return self._statement("pull_back_beats")
