"""What the API and the web page do with dead letters: looking, freezing a selection, acting on it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from pgq_core.api.context import ApiContext
from pgq_core.api.dead_models import MOST_AT_ONCE
from pgq_core.api.problems import ProblemError, not_found, refused
from pgq_core.api.tokens import Caller
from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.job import JSON
from pgq_core.domain.operation import BulkResult, ItemResult
from pgq_core.domain.payload import decode
from pgq_core.domain.snapshot import Count, DeadGroup, DeadLetterDetail, DeadLetterView
from pgq_core.errors import InvalidPayload

PAYLOAD_LIMIT: Final = 1024 * 1024
"""Characters of a payload that are read; what is longer is shown by its beginning."""
EXCERPT: Final = 16 * 1024
_LIFETIME: Final = timedelta(hours=1)
_SAMPLE: Final = 10


class Verb(StrEnum):
    REQUEUE = "requeue"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters as a preview found them, under a name. `more`: others match too, beyond what one request can do."""

    id: str
    count: int
    more: bool
    sample: tuple[DeadLetterView, ...]


@dataclass(frozen=True, slots=True)
class ShownPayload:
    """`value` where it could be read, else the beginning of its text; secrets are masked in both."""

    value: JSON
    excerpt: str | None


class DeadDesk:
    """One caller's view of the dead letters."""

    def __init__(self, context: ApiContext, caller: Caller) -> None:
        self._context = context
        self._caller = caller

    async def page(
        self, filters: DeadLetterFilters, *, limit: int, before: int | None, with_total: bool
    ) -> tuple[tuple[DeadLetterView, ...], Count | None]:
        async with self._context.looking.connection() as conn:
            inspector = self._context.inspector
            where = {} if before is None else {"before": before}
            letters = await inspector.dead_letters(conn, filters, limit=limit, **where)
            total = await inspector.count_dead_letters(conn, filters) if with_total else None
        return letters, total

    async def groups(self) -> tuple[DeadGroup, ...]:
        async with self._context.looking.connection() as conn:
            return await self._context.inspector.dead_groups(conn)

    async def newest(self) -> int:
        """The id of the newest unresolved one; 0 without any."""
        async with self._context.looking.connection() as conn:
            letters = await self._context.inspector.dead_letters(conn, limit=1)
        return letters[0].id if letters else 0

    async def detail(self, letter_id: int) -> DeadLetterDetail:
        async with self._context.looking.connection() as conn:
            found = await self._context.inspector.dead_letter(conn, letter_id, payload_limit=PAYLOAD_LIMIT)
        if found is None:
            raise not_found(f"there is no dead letter {letter_id}")
        return found

    async def freeze(self, filters: DeadLetterFilters) -> Selection:
        """The unresolved ones that match now."""
        async with self._context.bulk.connection() as conn:
            operations = self._context.operations(self._caller.name)
            found = await operations.preview(conn, filters, limit=MOST_AT_ONCE + 1)
        ids = found.ids[:MOST_AT_ONCE]
        return await self._frozen(ids, found.sample, more=len(found.ids) > len(ids))

    async def freeze_ids(self, ids: Sequence[int]) -> Selection:
        """These, in whatever state they are; those that are resolved will be refused, each with its reason."""
        wanted = sorted(set(ids), reverse=True)
        sample = []
        async with self._context.looking.connection() as conn:
            for letter_id in wanted[:_SAMPLE]:
                found = await self._context.inspector.dead_letter(conn, letter_id, payload_limit=0)
                if found is not None:
                    sample.append(found.letter)
        return await self._frozen(wanted, tuple(sample), more=False)

    async def selected(self, selection_id: str) -> list[int]:
        async with self._context.looking.connection() as conn:
            found = await self._context.queries.read_selection(selection_id).fetch_one(conn)
        if found is None:
            raise not_found("there is no such selection (any more): ask for a preview again")
        return found.ids

    async def resolve(self, verb: Verb, letter_id: int, *, reason: str | None) -> tuple[ItemResult, int | None]:
        """One; answers what became of it, and the operation. Refusals are raised."""
        await self.detail(letter_id)  # so that an id that never was is no operation
        result = await self.resolve_many(verb, [letter_id], reason=reason, spread=timedelta(0))
        (item,) = result.items
        if item.refusal is not None:
            raise refused(f"dead letter {letter_id}: {item.refusal}")
        return item, result.operation_id

    async def resolve_many(
        self, verb: Verb, ids: Sequence[int], *, reason: str | None, spread: timedelta | None = None
    ) -> BulkResult:
        if len(ids) > MOST_AT_ONCE:
            raise ProblemError(422, "invalid-request", f"at most {MOST_AT_ONCE:,} dead letters at a time")
        operations = self._context.operations(self._caller.name)
        async with self._context.bulk.connection() as conn:
            match verb:
                case Verb.REQUEUE:
                    return await operations.replay(conn, ids, spread=spread, reason=reason)
                case Verb.DISCARD:
                    return await operations.discard(conn, ids, reason=reason)

    async def undo(self, operation_id: int) -> BulkResult:
        operations = self._context.operations(self._caller.name)
        async with self._context.bulk.connection() as conn:
            return await operations.undo(conn, operation_id)

    def shown_payload(self, text: str, size: int) -> ShownPayload:
        if len(text) < size and len(text) >= PAYLOAD_LIMIT:
            return ShownPayload(None, self._context.mask.text(text[:EXCERPT]))
        try:
            return ShownPayload(self._context.mask.value(decode(text)), None)
        except InvalidPayload:  # nested too deep, or an integer of too many digits
            return ShownPayload(None, self._context.mask.text(text[:EXCERPT]))

    async def _frozen(self, ids: Sequence[int], sample: tuple[DeadLetterView, ...], *, more: bool) -> Selection:
        selection_id = secrets.token_urlsafe(18)
        statement = self._context.queries.freeze_selection(
            selection_id, ids=ids, operator=self._caller.name, lifetime=_LIFETIME
        )
        async with self._context.looking.connection() as conn:
            await statement.execute(conn)
        return Selection(selection_id, len(ids), more, sample)
