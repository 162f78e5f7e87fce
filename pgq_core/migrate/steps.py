"""The numbered steps of the schema, as this program ships them, and each step as the script that applies it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from psycopg import sql

from pgq_core.errors import SchemaError
from pgq_core.sql import migration_files, schema_statement

LOCK_WAIT = "10s"
"""How long a step waits for a table that others use."""

_COMPATIBLE = re.compile(r"^-- compatible_from: (\d+)$", re.MULTILINE)
_CONCURRENT_INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)", re.MULTILINE)
_RELATION = re.compile(
    r"^CREATE (?:UNLOGGED )?(?:TABLE|VIEW|SEQUENCE) (?:IF NOT EXISTS )?(\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step.

    `compatible_from`: the oldest program version (its newest known step) that still works after it.
    """

    version: int
    name: str
    text: str
    compatible_from: int

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def is_concurrent(self) -> bool:
        """Whether it is one idempotent statement for outside a transaction, its objects named by `{schema}`."""
        return self.text.startswith("-- concurrently")

    @property
    def concurrent_index(self) -> str | None:
        found = _CONCURRENT_INDEX.search(self.text)
        return found[1] if found else None

    @property
    def relations(self) -> frozenset[str]:
        """Tables, views and sequences that it makes."""
        return frozenset(_RELATION.findall(self.text))


@cache
def migrations() -> tuple[Migration, ...]:
    """All shipped steps, ascending."""
    return tuple(
        Migration(version, name, text, _compatible_from(text, name)) for version, name, text in migration_files()
    )


def newest_version() -> int:
    """What this program knows, and so the version that it counts as."""
    return migrations()[-1].version


def script(step: Migration, schema: str, *, is_first: bool) -> str:
    """What the step's transaction executes, printed or run: the version row first, so that it cannot be applied twice.

    Of a concurrent step only the version row: its statement runs on its own before.
    """
    parts = [lifted_timeouts(schema), schema_statement("set_search_path", schema)]
    if is_first:
        parts.append(schema_statement("create_versions_table", schema))
    parts.append(
        schema_statement(
            "record_step",
            schema,
            version=sql.Literal(step.version),
            name=sql.Literal(step.name),
            checksum=sql.Literal(step.checksum),
            compatible_from=sql.Literal(step.compatible_from),
        )
    )
    if not step.is_concurrent:
        parts.append(step.text)
    return joined(parts)


def lifted_timeouts(schema: str) -> str:
    return schema_statement("lift_timeouts", schema, lock_wait=sql.Literal(LOCK_WAIT))


def concurrent_statement(step: Migration, schema: str) -> str:
    return sql.SQL(step.text).format(schema=sql.Identifier(schema)).as_string(None)


def joined(statements: Sequence[str]) -> str:
    return "\n".join(f"{statement.rstrip().removesuffix(';')};" for statement in statements) + "\n"


def _compatible_from(text: str, name: str) -> int:
    found = _COMPATIBLE.search(text)
    if found is None:
        raise SchemaError(f'migration {name} lacks its line "-- compatible_from: VERSION"')
    return int(found[1])
