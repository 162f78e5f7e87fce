"""What the command line, the environment and the settings file say together."""

from __future__ import annotations

import typer

from pgq_core.cli.root import GlobalOptions
from pgq_core.settings import Settings, load_settings


def settings_of(ctx: typer.Context, **flags: object) -> Settings:
    """Settings with the global options, and a command's own, on top."""
    return load_settings(**global_flags(ctx), **flags)


def global_flags(ctx: typer.Context) -> dict[str, object]:
    """The global options that were given, by the names of the settings; None where not."""
    options: GlobalOptions = ctx.obj
    return {
        "dsn": options.dsn,
        "db_schema": options.schema,
        "operator": options.operator,
        "read_only": options.read_only or None,
    }
