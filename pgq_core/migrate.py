"""Brings a database to the schema this program needs: forward only, one transaction a step, one migrator at a time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, LiteralString, cast

from psycopg import Connection, sql

from pgq_core.database import connect_sync
from pgq_core.sql import migration_files

DEFAULT_SCHEMA = "pgq_core"

_COMPATIBLE = re.compile(r"^-- compatible_from: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step. `compatible_from`: the oldest program version (its newest known step) that still works after it."""

    version: int
    name: str
    text: str
    compatible_from: int

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    return [
        Migration(version, name, text, _compatible_from(text, version)) for version, name, text in migration_files()
    ]


def newest_version() -> int:
    return migrations()[-1].version


def migrate(dsn: str, schema: str = DEFAULT_SCHEMA) -> list[Migration]:
    """Applies what is missing; returns what was applied. Concurrent callers wait for each other."""
    with connect_sync(dsn, application_name="pgq-core migrate") as conn:
        conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        return [step for step in migrations() if _apply(conn, schema, step)]


def _apply(conn: Connection[Any], schema: str, step: Migration) -> bool:
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(hashtextextended('pgq migrate ' || %s, 0))", (schema,))
        conn.execute(sql.SQL("SET LOCAL search_path = {}, pg_temp").format(sql.Identifier(schema)))
        conn.execute(_VERSIONS)
        if conn.execute("SELECT 1 FROM schema_migrations WHERE version = %s", (step.version,)).fetchone():
            return False
        conn.execute(cast(LiteralString, step.text))
        conn.execute(
            "INSERT INTO schema_migrations (version, name, checksum, compatible_from) VALUES (%s, %s, %s, %s)",
            (step.version, step.name, step.checksum, step.compatible_from),
        )
    return True


def _compatible_from(text: str, version: int) -> int:
    found = _COMPATIBLE.search(text)
    return int(found[1]) if found else version


_VERSIONS: LiteralString = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version         int PRIMARY KEY,
    name            text NOT NULL,
    checksum        text NOT NULL,
    compatible_from int NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT now()
)"""

__all__ = ["DEFAULT_SCHEMA", "Migration", "migrate", "migrations", "newest_version"]
