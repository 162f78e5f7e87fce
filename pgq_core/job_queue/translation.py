"""Our own words for the driver's errors."""

from __future__ import annotations

import psycopg

from pgq_core.database import first_line, translated
from pgq_core.errors import InvalidPayload, InvalidSettings, PgqError, SchemaMissing

_MISSING = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName)
_UNSTORABLE = (
    psycopg.errors.UntranslatableCharacter,
    psycopg.errors.CharacterNotInRepertoire,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
)
_POOLED = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)


def explained(error: psycopg.Error, *, schema: str, is_own_connection: bool) -> PgqError | psycopg.Error:
    """What to raise instead. On a caller's connection the driver's errors stay: its transaction is theirs to judge."""
    if isinstance(error, _MISSING):
        return SchemaMissing(schema)
    if isinstance(error, _UNSTORABLE):  # for example a character that a LATIN1 database does not have
        return InvalidPayload(first_line(error), path="job")
    if isinstance(error, _POOLED) or "startup parameter" in str(error):
        return InvalidSettings(
            f"a connection pooler is between us and PostgreSQL ({first_line(error)}); pass prepare=False"
        )
    return translated(error) if is_own_connection else error
