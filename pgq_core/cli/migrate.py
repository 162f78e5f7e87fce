"""`pgq-core migrate`: bring a database to the schema this program needs."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.given import settings_of
from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson
from pgq_core.cli.output import print_json, say
from pgq_core.errors import ReadOnlyRefused
from pgq_core.migrate import MigrationReport, print_sql, run_migrations
from pgq_core.runtime import use_database

app = new_command()


@app.command()
def migrate(
    ctx: typer.Context,
    *,
    as_sql: Annotated[
        bool, typer.Option("--print-sql", help="Print the SQL for psql instead, and touch no database.")
    ] = False,
    after: Annotated[
        int, typer.Option(min=0, metavar="VERSION", help="With --print-sql: only steps above this one.")
    ] = 0,
    set_search_path: Annotated[
        bool, typer.Option("--set-search-path", help="Let plain SQL of this database find the tables by bare names.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create or update the tables. Safe to repeat; tables of the first form are adopted with all their rows."""
    settings = settings_of(ctx)
    if as_sql:
        typer.echo(print_sql(settings.db_schema, after=after), nl=False)
        return
    if settings.read_only:
        raise ReadOnlyRefused
    with use_database(settings, check=False, find_schema=False) as database:
        report = run_migrations(database.dsn, database.schema, set_search_path=set_search_path or database.is_embedded)
    if as_json:
        print_json(_as_json(report))
    else:
        _say_report(report)


def _as_json(report: MigrationReport) -> dict[str, object]:
    return {
        "schema": report.schema,
        "version": report.version,
        "applied": [{"version": step.version, "name": step.name} for step in report.applied],
        "adopted": report.adopted,
        "notices": report.notices(),
    }


def _say_report(report: MigrationReport) -> None:
    for step in report.applied:
        say(f"applied {step.name}")
    if not report.applied:
        say("nothing to do")
    for notice in report.notices():
        say(notice)
    say(f'schema "{report.schema}" is at version {report.version}')
