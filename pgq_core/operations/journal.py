"""Carries verbs out in small transactions, each of which writes down what it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import first_line
from pgq_core.domain.job import JSON
from pgq_core.domain.operation import ActionResult, BulkResult, ItemResult
from pgq_core.errors import OperationInterrupted
from pgq_core.queries import Queries

BATCH = 500
"""Items per transaction: short enough that a claim never waits long for a row that an operator's verb has locked."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with (items done so far, items in all)."""


@dataclass(frozen=True, slots=True)
class Action:
    """What an operator asked for, as the audit shows it."""

    name: str
    target: str
    reason: str | None = None
    parameters: dict[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of the items of one transaction. `undo`: what it takes to take them back; None: nothing can be."""

    items: Sequence[ItemResult]
    undo: dict[str, JSON] | None = None


class Journal:
    """Writes the rows of `operations`: one per verb, extended by each further batch in the batch's own transaction."""

    def __init__(self, queries: Queries, operator: str) -> None:
        self._queries = queries
        self.operator = operator

    async def carry_out(
        self,
        conn: AsyncConnection[Any],
        action: Action,
        ids: Iterable[int],
        act: Callable[[Sequence[int]], Awaitable[Batch]],
        *,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Acts on `ids` in id order, so that two operators cannot deadlock. Without ids nothing is done and written.

        Raises OperationInterrupted when the database fails after the first batch: what was done stays done, and stands
        in the operation it names.
        """
        wanted = sorted(set(ids))
        entry = _Entry(self._queries, self.operator, action, total=len(wanted))
        items: list[ItemResult] = []
        for start in range(0, len(wanted), BATCH):
            batch = await entry.add(conn, lambda part=wanted[start : start + BATCH]: act(part))  # type: ignore[misc]
            items.extend(batch.items)
            if progress is not None:
                progress(len(items), len(wanted))
        return BulkResult(entry.operation_id, tuple(items))

    async def repeat(
        self,
        conn: AsyncConnection[Any],
        action: Action,
        act: Callable[[], Awaitable[Batch]],
        *,
        total: int,
        progress: Progress | None = None,
    ) -> ActionResult:
        """Acts until a batch comes back empty. `total` is what is expected, for the progress."""
        entry = _Entry(self._queries, self.operator, action, total=total)
        while (await entry.add(conn, act)).items:
            if progress is not None:
                progress(entry.affected, max(total, entry.affected))
        return ActionResult(entry.operation_id, affected=entry.affected)

    async def write_down(
        self, conn: AsyncConnection[Any], action: Action, *, affected: int, undo: dict[str, JSON] | None = None
    ) -> int:
        """One row for a verb on one thing, in the caller's transaction, which carries it out."""
        return await add_operation(self._queries, conn, self.operator, action, affected=affected, refused=0, undo=undo)


class _Entry:
    """The row of one verb over several transactions. It counts a batch only once its transaction has been committed."""

    def __init__(self, queries: Queries, operator: str, action: Action, *, total: int) -> None:
        self._queries = queries
        self._operator = operator
        self._action = action
        self._total = total
        self._undo: dict[str, JSON] | None = None
        self.operation_id: int | None = None
        self.affected = 0
        self.refused = 0

    async def add(self, conn: AsyncConnection[Any], act: Callable[[], Awaitable[Batch]]) -> Batch:
        try:
            async with conn.transaction():
                batch = await act()
                refused = self.refused + sum(1 for item in batch.items if item.refusal is not None)
                affected = self.affected + self.refused + len(batch.items) - refused
                undo = _merged(self._undo, batch.undo)
                operation_id = await self._write(conn, affected, refused, undo)
        except psycopg.Error as error:
            if self.operation_id is None:
                raise
            done = self.affected + self.refused
            raise OperationInterrupted(
                self.operation_id, done=done, total=self._total, cause=first_line(error)
            ) from error
        self.operation_id, self.affected, self.refused, self._undo = operation_id, affected, refused, undo
        return batch

    async def _write(
        self, conn: AsyncConnection[Any], affected: int, refused: int, undo: dict[str, JSON] | None
    ) -> int:
        if self.operation_id is None:
            return await add_operation(
                self._queries, conn, self._operator, self._action, affected=affected, refused=refused, undo=undo
            )
        await self._queries.extend_operation(self.operation_id, affected=affected, refused=refused, undo=undo).execute(
            conn
        )
        return self.operation_id


async def add_operation(
    queries: Queries,
    conn: AsyncConnection[Any],
    operator: str,
    action: Action,
    *,
    affected: int,
    refused: int,
    undo: dict[str, JSON] | None,
) -> int:
    (operation_id,) = await queries.add_operation(
        operator=operator,
        action=action.name,
        target=action.target,
        reason=action.reason,
        affected=affected,
        refused=refused,
        parameters=action.parameters,
        undo=undo,
    ).fetch_all(conn)
    return operation_id


def _merged(undo: dict[str, JSON] | None, more: dict[str, JSON] | None) -> dict[str, JSON] | None:
    """Lists and mappings grow, anything else is replaced."""
    if undo is None or more is None:
        return more or undo
    merged = dict(undo)
    for name, value in more.items():
        known = merged.get(name)
        if isinstance(known, list):
            merged[name] = known + value
        elif isinstance(known, dict):
            merged[name] = {**known, **value}
        else:
            merged[name] = value
    return merged
