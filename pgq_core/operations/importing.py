"""Taking over dead letters that were exported, here or from another database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from pgq_core.domain.enqueue import checked_max_attempts, checked_name, checked_priority
from pgq_core.domain.job import JSON, DeathReason
from pgq_core.domain.operation import BulkResult, ItemResult
from pgq_core.domain.payload import decode, encode
from pgq_core.errors import InvalidJob, InvalidPayload
from pgq_core.operations.journal import Action, Batch, Progress
from pgq_core.operations.verbs import Verbs, counted, stored_reason

_TEXTS = ("error_class", "traceback", "fingerprint", "last_worker", "idempotency_key", "note")
_LARGEST_ID = 2**63 - 1
_LARGEST_INT = 2**31 - 1
_LONGEST = 100 * 366 * 86400


class ImportVerb(Verbs):
    async def import_letters(
        self,
        conn: AsyncConnection[Any],
        documents: Sequence[str],
        *,
        reason: str | None = None,
        progress: Progress | None = None,
    ) -> BulkResult:
        """Adds exported dead letters as unresolved ones; items are told by line number, from 1.

        A letter that is here already (the same job, dead at the same moment) is refused, so that a repeat does no harm.
        """
        lines = dict(enumerate(documents, start=1))
        faults = {line: fault for line, text in lines.items() if (fault := fault_of(text))}

        async def act(batch: Sequence[int]) -> Batch:
            sound = {line: lines[line] for line in batch if line not in faults}
            rows = await self._queries.import_dead_letters(sound).fetch_all(conn)
            added = {row.line: row.dead_letter_id for row in rows}
            return Batch([_item(line, added, faults) for line in batch])

        action = Action("import", counted(len(lines), "dead letter"), stored_reason(reason))
        return await self._journal.carry_out(conn, action, lines, act, progress=progress)


def _item(line: int, added: Mapping[int, int | None], faults: Mapping[int, str]) -> ItemResult:
    if line in faults:
        return ItemResult(line, faults[line])
    dead_letter_id = added.get(line)
    if dead_letter_id is None:
        return ItemResult(line, "it is here already")
    return ItemResult(line, answer=f"dead letter {dead_letter_id}")


def fault_of(text: str) -> str | None:
    """Why a line is no exported dead letter; None when it is one."""
    try:
        document = decode(text)
        encode(document)
        if not isinstance(document, dict):
            return "it is no JSON object"
        _check(document)
    except (InvalidPayload, InvalidJob) as error:
        return str(error)
    return None


def _check(document: Mapping[str, JSON]) -> None:
    checked_name("queue", document.get("queue"))
    checked_priority(document.get("priority", 0))
    checked_max_attempts(document.get("max_attempts"))
    for name, largest in (("original_job_id", _LARGEST_ID), ("attempts", _LARGEST_INT)):
        _expect(name, _is_count(document.get(name), largest), f"has to be a whole number up to {largest}")
    for name, largest in (("origin_job_id", _LARGEST_ID), ("timeout_seconds", _LONGEST)):
        given = document.get(name)
        _expect(name, given is None or _is_number(given, largest), f"has to be a number up to {largest}")
    _expect("payload", "payload" in document, "is missing")
    _expect("last_error", isinstance(document.get("last_error"), str), "has to be a text")
    _expect("reason", document.get("reason") in set(DeathReason), "is no reason a job dies of")
    _expect("died_at", _is_time(document.get("died_at")), "has to be an ISO time with an offset")
    created = document.get("created_at")
    _expect("created_at", created is None or _is_time(created), "has to be an ISO time with an offset")
    for name in _TEXTS:
        _expect(name, isinstance(document.get(name), str | None), "has to be a text")


def _expect(name: str, is_right: bool, complaint: str) -> None:
    if not is_right:
        raise InvalidJob(name, complaint)


def _is_count(value: JSON, largest: int) -> bool:
    return isinstance(value, int) and _is_number(value, largest)


def _is_number(value: JSON, largest: int) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= largest


def _is_time(value: JSON) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
