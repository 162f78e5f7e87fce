"""Statements of the HTTP API's own tables: tokens and frozen selections; and what it asks about types and locks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgq_core.domain.job import JSON
from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class FoundTokenRow:
    id: int
    name: str
    scopes: list[str]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as people see it."""

    id: int
    name: str
    scopes: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobTypeRow:
    """What workers announced about one type. `model`: its JSON Schema."""

    name: str
    queue: str | None
    model: JSON
    max_attempts: int | None
    timeout: timedelta | None


@dataclass(frozen=True, slots=True)
class SelectionRow:
    ids: list[int]


class TokenQueries(QueryGroup):
    def add_api_token(
        self,
        *,
        name: str,
        digest: bytes,
        scopes: Sequence[str],
        operator: str,
        lifetime: timedelta | None,
    ) -> Statement[int]:
        """Row: its id. No row: a live token has this name already."""
        return self._statement(
            "add_api_token", int, name=name, digest=digest, scopes=list(scopes), operator=operator, lifetime=lifetime
        )

    def find_api_token(self, *, digest: bytes) -> Statement[FoundTokenRow]:
        return self._statement("find_api_token", FoundTokenRow, digest=digest)

    def touch_api_token(self, *, token_id: int) -> Statement[None]:
        return self._statement("touch_api_token", token_id=token_id)

    def list_api_tokens(self, *, limit: int) -> Statement[TokenRow]:
        return self._statement("list_api_tokens", TokenRow, limit=limit)

    def revoke_api_token(self, *, name: str, operator: str) -> Statement[int]:
        """Row: its id. No row: there is no live token of this name."""
        return self._statement("revoke_api_token", int, name=name, operator=operator)

    def freeze_selection(
        self, selection_id: str, *, ids: Sequence[int], operator: str, lifetime: timedelta
    ) -> Statement[None]:
        return self._statement(
            "freeze_selection", selection_id=selection_id, ids=list(ids), operator=operator, lifetime=lifetime
        )

    def read_selection(self, selection_id: str) -> Statement[SelectionRow]:
        """No row: it is unknown or past its time."""
        return self._statement("read_selection", SelectionRow, selection_id=selection_id)

    def find_job_type(self, *, name: str) -> Statement[JobTypeRow]:
        return self._statement("find_job_type", JobTypeRow, name=name)

    def list_type_names(self, *, limit: int) -> Statement[str]:
        return self._statement("list_type_names", str, limit=limit)

    def probe_jobs(self) -> Statement[int]:
        return self._statement("probe_jobs", int)
