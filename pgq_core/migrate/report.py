"""What a migration did, and what its caller may want to know about the neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from pgq_core.migrate.steps import Migration
from pgq_core.queries.schema import SearchPathRow
from pgq_core.sql import schema_statement


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """`adopted`: tables of the first form that were turned into ours; `first_form_in`: a schema that holds such tables
    although another one was asked for."""

    schema: str
    version: int
    applied: tuple[Migration, ...]
    adopted: tuple[str, ...]
    first_form_in: str | None
    search_path: SearchPathRow
    is_search_path_set: bool = False

    def notices(self) -> list[str]:
        """Sentences for a person, beside the list of steps."""
        found = []
        if self.adopted:
            found.append(f'adopted with all their rows: {", ".join(self.adopted)} of schema "{self.schema}"')
        if self.first_form_in is not None:
            found.append(
                f'schema "{self.first_form_in}" holds job tables of the first form, which were left alone; '
                f"to adopt them with all their rows: pgq-core migrate --schema {self.first_form_in}"
            )
        if self.is_search_path_set:
            found.append(f'new sessions of database "{self.search_path.database}" find our tables by their bare names')
        elif self.search_path.schema_of_jobs is None:
            found.append(
                "plain SQL that says jobs without a schema needs, once: "
                f"{search_path_line(self.schema, self.search_path)};  (or: pgq-core migrate --set-search-path)"
            )
        elif not self.search_path.is_ours:
            found.append(
                f"a bare jobs means {self.search_path.schema_of_jobs}.jobs in this database, so its search_path "
                f"was left alone: say {sql.Identifier(self.schema, 'jobs').as_string(None)}"
            )
        return found


def search_path_line(schema: str, row: SearchPathRow) -> str:
    """Our schema first, the rest of the path as it is now."""
    rest = sql.SQL(f", {row.search_path}" if row.search_path.strip() else "")
    line = schema_statement("set_database_search_path", schema, database=sql.Identifier(row.database), rest=rest)
    return line.strip()
