"""The command `pgq-tui`: without a sub-command it opens the console. Heavy modules are imported when needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="The terminal console of a job queue on PostgreSQL. Without a command it opens the console.",
    epilog="Exit codes: 0 ok, 1 failed, 2 usage (also: no terminal), 3 database.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    add_completion=True,
)

Dsn = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Database; else DATABASE_URL, else the embedded one.")]
Schema = Annotated[str | None, typer.Option(metavar="NAME", help="Schema of the tables (pgq_core).")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from pgq_tui import __version__

        typer.echo(f"pgq-tui {__version__}")
        raise typer.Exit


@app.callback()
def console(
    ctx: typer.Context,
    dsn: Dsn = None,
    schema: Schema = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Open a shop with workers, jobs and trouble of its own.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Look, but offer nothing that changes anything.")
    ] = False,
    context: Annotated[str, typer.Option(metavar="NAME", help="A name for this database, shown in the corner.")] = "",
    operator: Annotated[str | None, typer.Option(metavar="NAME", help="Who the audit says it was (user@host).")] = None,
    theme: Annotated[str | None, typer.Option(metavar="NAME", help="pgq-dark, pgq-light or pgq-ansi.")] = None,
    icons: Annotated[str, typer.Option(metavar="auto|unicode|ascii", help="Signs for icons and lines.")] = "auto",
    refresh: Annotated[float, typer.Option(min=0.2, max=60, metavar="SECONDS", help="How often to look.")] = 1.0,
    mouse: Annotated[
        bool, typer.Option("--mouse/--no-mouse", help="Without, the terminal's own selection works.")
    ] = True,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error at the start.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    from pgq_core.cli.failures import ExitCode, explained, fail

    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        fail("pgq-tui needs a terminal; for scripts there is pgq-core, with --json", ExitCode.USAGE)
    if icons not in {"auto", "unicode", "ascii"}:
        fail(f"--icons {icons}: use auto, unicode or ascii", ExitCode.USAGE)
    if demo and dsn:
        fail("--demo has a database of its own: leave --dsn away", ExitCode.USAGE)
    from pgq_tui.terminal_guard import guarded_terminal

    with explained(debug=debug), guarded_terminal():
        from pgq_tui.opening import ConsoleOptions, open_console

        options = ConsoleOptions(
            dsn=dsn,
            schema=schema,
            is_demo=demo,
            read_only=read_only,
            context=context,
            operator=operator,
            theme=theme,
            icons=icons,
            refresh=refresh,
            mouse=mouse,
        )
        code = open_console(options)
    raise typer.Exit(code)


@app.command()
def supervise(
    dsn: Dsn = None,
    schema: Schema = None,
    pools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What this host's pools execute (pools.toml of the user).")
    ] = None,
    host: Annotated[str | None, typer.Option(metavar="NAME", help="Name of this host in the tables.")] = None,
    maintenance: Annotated[
        bool, typer.Option("--maintenance/--no-maintenance", help="Also promote, reap and prune.")
    ] = True,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="PORT", help="Serve /metrics for Prometheus on loopback.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Keep this host's worker pools at their wanted numbers, without a screen."""
    from pgq_core.cli.failures import explained

    with explained(debug=debug):
        from pgq_tui.supervising import supervise_host

        code = supervise_host(
            dsn, schema, pools=pools, host=host, with_maintenance=maintenance, metrics_port=metrics_port
        )
    raise typer.Exit(code)


@app.command()
def screenshots(
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where the pictures go.")] = Path("screenshots"),
    only: Annotated[str | None, typer.Option(metavar="SCREEN", help="One picture, such as dashboard.")] = None,
) -> None:
    """Draw all screens as pictures, from a shop that stands still."""
    from pgq_tui.pictures.camera import take_pictures

    for path in take_pictures(directory, only=only):
        typer.echo(path)


@app.command("reset-terminal")
def reset_terminal() -> None:
    """Give a terminal back its senses after something was killed in it."""
    from pgq_tui.terminal import reset

    reset()


def main() -> None:
    """The entry point of the console script."""
    app(prog_name="pgq-tui")
