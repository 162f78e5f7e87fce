"""`pgq-tui supervise`: the supervisor of this host in the foreground, with its logs on stderr."""

from __future__ import annotations

from pathlib import Path

from pgq_core.logs import configure_logs
from pgq_core.settings import load_settings
from pgq_tui.supervisor import EmbeddedName, SupervisorOptions, default_pools_file, load_pools, run_supervisor


def supervise_host(
    dsn: str | None,
    schema: str | None,
    *,
    pools: Path | None = None,
    host: str | None = None,
    with_maintenance: bool = True,
    metrics_port: int | None = None,
) -> int:
    """Blocks until it is told to stop; the exit code. Raises InvalidSettings, SupervisorRunning, SchemaError."""
    settings = load_settings(dsn=dsn, db_schema=schema)
    definitions = load_pools(pools or default_pools_file())
    embedded = EmbeddedName() if settings.dsn is None else None
    options = SupervisorOptions(
        settings=settings,
        pools=definitions,
        embedded=embedded,
        with_maintenance=with_maintenance,
        metrics_port=metrics_port,
    )
    if host:
        options = options.model_copy(update={"host": host})
    writer = configure_logs(format=settings.log_format, level=settings.log_level)
    try:
        return run_supervisor(options)
    finally:
        writer.close()
