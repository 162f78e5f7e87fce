"""`pgq-core worker`: run jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.given import settings_of
from pgq_core.cli.groups import new_command
from pgq_core.errors import ReadOnlyRefused
from pgq_core.foreground import ForegroundOrders, become_foreground, run_foreground
from pgq_core.logs import configure_logs
from pgq_core.plain_settings import plain
from pgq_core.runtime import use_database

LOOPBACK = "127.0.0.1"
app = new_command()


@app.command()
def worker(
    ctx: typer.Context,
    *,
    apps: Annotated[
        list[str], typer.Option("--app", "-a", help="Where the handlers are: module, module:registry or path/file.py.")
    ],
    queues: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="NAMES", help="Queues to serve, such as a,b or a=3,b (weights)."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, help="Jobs at the same time.")
    ] = None,
    grace: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="How long running jobs may take at a stop.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="Name of the pool this worker counts for.")] = None,
    burst: Annotated[bool, typer.Option("--burst", help="End when no job is left to do.")] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Start anew when the code changes.")] = False,
    no_maintenance: Annotated[
        bool, typer.Option("--no-maintenance", help="Leave promoting, reaping and pruning to others.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="PORT", help="Serve /metrics for Prometheus there.")
    ] = None,
    metrics_host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to serve it.")] = LOOPBACK,
    log_format: Annotated[str | None, typer.Option(metavar="json|text", help="How log lines look.")] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = None,
) -> None:
    """Run jobs until SIGTERM or SIGINT: then finish what runs, hand the rest back, and end."""
    settings = settings_of(
        ctx,
        queues=",".join(queues) if queues else None,
        concurrency=concurrency,
        grace=grace,
        log_format=log_format,
        log_level=log_level,
    )
    if settings.read_only:
        raise ReadOnlyRefused
    log = configure_logs(format=settings.log_format, level=settings.log_level)
    with use_database(settings, waits=True) as database:
        orders = ForegroundOrders(
            settings=plain(settings.model_copy(update={"dsn": database.dsn, "db_schema": database.schema})),
            apps=tuple(apps),
            pool=pool,
            burst=burst,
            reload=reload,
            with_maintenance=not no_maintenance,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        if not database.is_embedded:
            log.close()
            become_foreground(orders)
        # The lease on the embedded server is held by this very process.
        code = run_foreground(orders)
    raise typer.Exit(code)
