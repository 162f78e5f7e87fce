"""`pgq-core maintain`: what one worker does on the side, as a process of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.given import settings_of
from pgq_core.cli.groups import new_command
from pgq_core.errors import ReadOnlyRefused
from pgq_core.logs import configure_logs
from pgq_core.maintenance import run_maintenance
from pgq_core.runtime import use_database

app = new_command()


@app.command()
def maintain(
    ctx: typer.Context,
    *,
    log_format: Annotated[str | None, typer.Option(metavar="json|text", help="How log lines look.")] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = None,
) -> None:
    """Promote due jobs, take back jobs of dead workers, prune what is past retention; until SIGTERM or SIGINT."""
    settings = settings_of(ctx, log_format=log_format, log_level=log_level)
    if settings.read_only:
        raise ReadOnlyRefused
    configure_logs(format=settings.log_format, level=settings.log_level)
    with use_database(settings, waits=True) as database:
        code = run_maintenance(settings.model_copy(update={"dsn": database.dsn, "db_schema": database.schema}))
    raise typer.Exit(code)
