"""Migrations of the schema, and the check of a schema that is there."""

from __future__ import annotations

from pgq_core.migrate.check import USUAL_SCHEMAS, check_schema, check_schema_async
from pgq_core.migrate.migrator import DEFAULT_SCHEMA, has_first_form, migrate, run_migrations
from pgq_core.migrate.printing import print_sql
from pgq_core.migrate.report import MigrationReport
from pgq_core.migrate.steps import Migration, migrations, newest_version

__all__ = [
    "DEFAULT_SCHEMA",
    "USUAL_SCHEMAS",
    "Migration",
    "MigrationReport",
    "check_schema",
    "check_schema_async",
    "has_first_form",
    "migrate",
    "migrations",
    "newest_version",
    "print_sql",
    "run_migrations",
]
