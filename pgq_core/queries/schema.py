"""Statements about the schema itself: what is there, whose it is, which steps it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pgq_core.queries.statement import QueryGroup, Statement


@dataclass(frozen=True, slots=True)
class MigrationRow:
    """One applied step."""

    version: int
    name: str
    checksum: str
    compatible_from: int
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class RelationRow:
    """`kind` as in pg_class.relkind; `columns` as "name type" in their order."""

    name: str
    kind: str
    owner: str
    is_ours_to_change: bool
    columns: list[str]


@dataclass(frozen=True, slots=True)
class StandingRow:
    role: str
    database: str
    schema_exists: bool
    may_create_schema: bool
    may_create_tables: bool


@dataclass(frozen=True, slots=True)
class LockHolderRow:
    pid: int
    application_name: str
    state: str | None
    xact_start: datetime | None


@dataclass(frozen=True, slots=True)
class SearchPathRow:
    """`schema_of_jobs`: where a bare `jobs` leads; None when nowhere."""

    database: str
    search_path: str
    schema_of_jobs: str | None
    is_ours: bool


class SchemaQueries(QueryGroup):
    def list_migrations(self) -> Statement[MigrationRow]:
        return self._statement("list_migrations", MigrationRow)

    def list_relations(self) -> Statement[RelationRow]:
        return self._statement("list_relations", RelationRow, schema=self.schema)

    def read_standing(self) -> Statement[StandingRow]:
        return self._statement("read_standing", StandingRow, schema=self.schema)

    def try_migration_lock(self) -> Statement[bool]:
        return self._statement("try_migration_lock", bool, schema=self.schema)

    def list_lock_holders(self) -> Statement[LockHolderRow]:
        return self._statement("list_lock_holders", LockHolderRow, schema=self.schema)

    def read_search_path(self) -> Statement[SearchPathRow]:
        return self._statement("read_search_path", SearchPathRow, schema=self.schema)

    def has_invalid_index(self, index: str) -> Statement[bool]:
        return self._statement("has_invalid_index", bool, schema=self.schema, index=index)
