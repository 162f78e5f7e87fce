"""Verbs on dead letters: replay, discard, edit and replay; and the preview that freezes what a bulk verb acts on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.filters import DeadLetterFilters, Resolution
from pgq_core.domain.job import JSON
from pgq_core.domain.operation import BulkResult, ItemResult, Preview
from pgq_core.domain.payload import decode, encode
from pgq_core.errors import InvalidPayload
from pgq_core.operations.journal import Action, Batch, Progress
from pgq_core.operations.verbs import Verbs, counted, stored_reason
from pgq_core.queries.lists import ABOVE_ALL_IDS, EVERYTHING

SAMPLE = 10
AT_ONCE = 100
PER_SECOND = 100

_PAGE = 10_000


def automatic_spread(count: int) -> timedelta:
    """Over how long the jobs of a replay become due: a hundred at once, more at a hundred per second.

    >>> automatic_spread(100), automatic_spread(20_000)
    (datetime.timedelta(0), datetime.timedelta(seconds=200))
    """
    return timedelta(seconds=count / PER_SECOND) if count > AT_ONCE else timedelta(0)


class DeadLetterVerbs(Verbs):
    async def preview(
        self, conn: AsyncConnection[Any], filters: DeadLetterFilters, *, limit: int | None = None
    ) -> Preview:
        """The unresolved dead letters that match now. A verb on its ids never touches what arrives later."""
        unresolved = replace(filters, resolution=Resolution.UNRESOLVED)
        ids: list[int] = []
        before = ABOVE_ALL_IDS
        while page := await self._page_of_ids(conn, unresolved, before, limit, len(ids)):
            ids.extend(page)
            before = page[-1]
        sample = await self._queries.list_dead_letters(
            unresolved, before=ids[0] + 1 if ids else 0, reach=EVERYTHING, limit=min(SAMPLE, len(ids))
        ).fetch_all(conn)
        return Preview(tuple(ids), tuple(sample))

    async def replay(
        self,
        conn: AsyncConnection[Any],
        ids: Collection[int],
        *,
        spread: timedelta | None = None,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Back to `jobs`, attempts at 0. `spread` None: `automatic_spread`, so that healthy work is not flooded."""
        span = automatic_spread(len(set(ids))) if spread is None else spread

        async def act(batch: Sequence[int]) -> Batch:
            # Batches follow each other within milliseconds, each evenly over the whole span: so are all together.
            rows = await self._queries.replay_dead_letters(batch, operator=self.operator, spread=span).fetch_all(conn)
            answers = {row.id: ItemResult(row.id, row.refusal, row.job_id) for row in rows}
            items = _answered(batch, answers)
            return Batch(items, _undo_of(items))

        action = Action(
            "replay",
            counted(len(set(ids)), "dead letter"),
            stored_reason(reason),
            {"spread_seconds": span.total_seconds()},
        )
        return await self._journal.carry_out(conn, action, ids, act, progress=progress)

    async def discard(
        self,
        conn: AsyncConnection[Any],
        ids: Collection[int],
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Resolved for good: kept until retention, and undone at any time before."""

        async def act(batch: Sequence[int]) -> Batch:
            rows = await self._queries.discard_dead_letters(batch, operator=self.operator).fetch_all(conn)
            items = _answered(batch, {row.id: ItemResult(row.id, row.refusal) for row in rows})
            return Batch(items, _undo_of(items))

        action = Action("discard", counted(len(set(ids)), "dead letter"), stored_reason(reason))
        return await self._journal.carry_out(conn, action, ids, act, progress=progress)

    async def edit_and_replay(
        self, conn: AsyncConnection[Any], dead_letter_id: int, payload_text: str, *, reason: str | None = None
    ) -> BulkResult:
        """Replays with another payload (JSON text, kept to the digit); the first one stays in `original_payload`.

        Raises InvalidPayload, before anything is written, for what is no object with a non-empty string "type".
        """
        check_payload(payload_text)

        async def act(batch: Sequence[int]) -> Batch:
            edited = await self._queries.edit_dead_letter(dead_letter_id, payload=payload_text).fetch_one(conn)
            rows = await self._queries.replay_dead_letters(
                batch, operator=self.operator, spread=timedelta(0)
            ).fetch_all(conn)
            items = _answered(batch, {row.id: ItemResult(row.id, row.refusal, row.job_id) for row in rows})
            if edited is None:
                return Batch(items)
            if items[0].refusal is not None:
                # Refused after all: without its replay the edit is not wanted either.
                await self._queries.restore_payload(
                    edited.id, payload=edited.payload, original_payload=edited.original_payload
                ).execute(conn)
                return Batch(items)
            undo = {"dead_letter_ids": [edited.id], "payload": edited.payload, "original": edited.original_payload}
            return Batch(items, undo)

        action = Action("edit_and_replay", f"dead letter {dead_letter_id}", stored_reason(reason))
        return await self._journal.carry_out(conn, action, [dead_letter_id], act)

    async def _page_of_ids(
        self, conn: AsyncConnection[Any], filters: DeadLetterFilters, before: int, limit: int | None, found: int
    ) -> list[int]:
        size = _PAGE if limit is None else min(_PAGE, limit - found)
        if size <= 0:
            return []
        statement = self._queries.list_dead_letter_ids(filters, before=before, reach=EVERYTHING, limit=size)
        return await statement.fetch_all(conn)


def check_payload(text: str) -> JSON:
    """The value of a payload's text. Raises InvalidPayload for what `jobs` would refuse."""
    value = decode(text)
    encode(value)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or not value["type"]:
        raise InvalidPayload('has to be an object with a non-empty string "type"', path="payload")
    return value


def _answered(batch: Sequence[int], answers: dict[int, ItemResult]) -> list[ItemResult]:
    return [answers.get(wanted) or ItemResult(wanted, f"there is no dead letter {wanted}") for wanted in batch]


def _undo_of(items: Sequence[ItemResult]) -> dict[str, JSON] | None:
    done = [item.id for item in items if item.refusal is None]
    return {"dead_letter_ids": done} if done else None
