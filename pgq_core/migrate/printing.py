"""The schema as SQL for psql, for those who let nobody but themselves change a database."""

from __future__ import annotations

from psycopg import sql

from pgq_core.migrate.steps import Migration, concurrent_statement, joined, migrations, script
from pgq_core.sql import schema_statement

_HEAD = """\
-- The pgq schema {schema}, steps {first} to {last}. Run it with psql: it stops at the first error, and a step that
-- failed leaves nothing behind. A step that was applied before is refused by its version row.
\\set ON_ERROR_STOP on
"""


def print_sql(schema: str, *, after: int = 0) -> str:
    """What `migrate` would do from version `after` on; run by psql it leaves the same schema, version rows included."""
    steps = [step for step in migrations() if step.version > after]
    if not steps:
        return ""
    head = _HEAD.format(schema=sql.Identifier(schema).as_string(None), first=steps[0].version, last=steps[-1].version)
    parts = [head, joined([schema_statement("refuse_unfit_server", schema)])]
    first = migrations()[0]
    parts += [_printed(step, schema, is_first=step is first) for step in steps]
    return "\n".join(parts)


def _printed(step: Migration, schema: str, *, is_first: bool) -> str:
    opening = ["BEGIN", schema_statement("wait_for_migration_lock", schema)]
    if is_first:
        opening.append(schema_statement("create_schema", schema))
    transaction = joined(opening) + script(step, schema, is_first=is_first) + "COMMIT;\n"
    if step.is_concurrent:
        transaction = joined([concurrent_statement(step, schema)]) + transaction
    return f"-- {step.name}\n{transaction}"
