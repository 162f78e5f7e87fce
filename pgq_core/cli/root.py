"""`pgq-core` itself: the global options and the names of all commands."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from pgq_core.cli.groups import GLOBALS_NOTE, LazyGroup

COMMANDS = {
    "migrate": ("pgq_core.cli.migrate", "Create or update the tables"),
    "worker": ("pgq_core.cli.worker", "Run jobs"),
    "maintain": ("pgq_core.cli.maintain", "Promote, reap and prune in a process of its own"),
    "api": ("pgq_core.cli.api", "Serve the HTTP API and the page for dead letters; its tokens"),
    "enqueue": ("pgq_core.cli.enqueue", "Add a job"),
    "jobs": ("pgq_core.cli.jobs", "List live jobs; show, cancel, move or reschedule them"),
    "runs": ("pgq_core.cli.runs", "List closed runs, newest first"),
    "tail": ("pgq_core.cli.tail", "Follow runs as they end"),
    "dead": ("pgq_core.cli.dead", "Dead letters: list, group, show, replay, discard, export, import"),
    "queues": ("pgq_core.cli.queues", "Queues: list, pause, resume, purge"),
    "workers": ("pgq_core.cli.workers", "Workers: list, show their last output, drain, stop, restart"),
    "pools": ("pgq_core.cli.pools", "Worker pools: list, scale, drain, restart"),
    "operations": ("pgq_core.cli.operations", "What operators did; take it back"),
    "stats": ("pgq_core.cli.stats", "The whole picture in numbers"),
    "doctor": ("pgq_core.cli.doctor", "Check settings, connection, schema, rights and clock"),
    "bench": ("pgq_core.cli.bench", "Measure throughput, latency and cost on this machine"),
    "url": ("pgq_core.cli.url", "Print the address of the database in use"),
    "server": ("pgq_core.cli.server", "The embedded PostgreSQL: status, stop"),
}


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    dsn: str | None
    schema: str | None
    operator: str | None
    read_only: bool
    debug: bool


class Root(LazyGroup):
    lazy = COMMANDS


app = typer.Typer(
    cls=Root,
    help="A job queue on PostgreSQL and nothing else.",
    epilog=f"{GLOBALS_NOTE} Exit codes: 0 ok, 1 failed or partial, 2 usage, 3 database, 4 refused by policy.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from pgq_core import __version__

        typer.echo(f"pgq-core {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    *,
    dsn: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Database; else DATABASE_URL, the settings file, the embedded server."),
    ] = None,
    schema: Annotated[str | None, typer.Option(metavar="NAME", help="Schema of the tables (pgq_core).")] = None,
    operator: Annotated[str | None, typer.Option(metavar="NAME", help="Who the audit says it was (user@host).")] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every command that changes something.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    ctx.obj = GlobalOptions(dsn, schema, operator, read_only, debug)


def main() -> None:
    """The entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows a question mark for what it lacks; it must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="pgq-core")
