"""What all groups of verbs share."""

from __future__ import annotations

from pgq_core.domain.text import storable
from pgq_core.operations.journal import Journal
from pgq_core.queries import Queries

_LONGEST_REASON = 2000


class Verbs:
    """Base of the groups that make up `Operations`."""

    def __init__(self, queries: Queries, operator: str) -> None:
        self._queries = queries
        self._journal = Journal(queries, operator)

    @property
    def operator(self) -> str:
        return self._journal.operator


def stored_reason(reason: str | None) -> str | None:
    return storable(reason, limit=_LONGEST_REASON) if reason else None


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "job"), counted(2, "dead letter")
    ('1 job', '2 dead letters')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
