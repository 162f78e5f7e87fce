"""`pgq-core bench`: measure the queue on this machine and server."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pgq_core.bench.options import BenchOptions, ScenarioName, Work
from pgq_core.bench.pictures import draw
from pgq_core.bench.result import Conditions, ScenarioResult
from pgq_core.bench.run import run_bench
from pgq_core.bench.table import conditions_text, scenario_table
from pgq_core.cli.failures import ExitCode, UsageError
from pgq_core.cli.groups import new_command
from pgq_core.cli.root import GlobalOptions
from pgq_core.errors import ReadOnlyRefused

ALL = "all"
_PIPE_WIDTH = 200

app = new_command()


@app.command()
def bench(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO]...", help=f"{', '.join(ScenarioName)}, or {ALL}; drain if none is named."),
    ] = None,
    *,
    jobs: Annotated[int, typer.Option("--jobs", "-n", min=100, help="Jobs of a drain.")] = 100_000,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", min=1, max=256, help="Worker processes (drain 8, latency 1, else 2)."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, help="Jobs at the same time in each worker.")
    ] = None,
    handler: Annotated[
        str, typer.Option(metavar="noop|thread|sleep:MS", help="What a job does: nothing, nothing in a thread, a wait.")
    ] = "noop",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of which the median is shown (3; long scenarios 1).")
    ] = None,
    duration: Annotated[
        float | None, typer.Option(min=1, metavar="SECONDS", help="Length of an open-loop load, or of the calls.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows in the way: backlog 10,000,000, held-snapshot 5,000,000, future and console 1,000,000.",
        ),
    ] = None,
    share: Annotated[
        float | None, typer.Option(min=0.01, max=1.5, help="Open-loop load as a share of the capacity (0.7; 0.6).")
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(min=1, metavar="RATE", help="Jobs a second; searched for if it is not given.")
    ] = None,
    producers: Annotated[int, typer.Option(min=1, max=64, help="Producer processes of an open-loop load.")] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write all figures, each round.")
    ] = None,
    svg_file: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", dir_okay=False, help="Draw the main figures.")
    ] = None,
) -> None:
    """Measure throughput, latency and cost with real worker processes, in a database made for it and dropped again.

    Runs on an embedded PostgreSQL of its own, or on the server of --dsn; never on that of DATABASE_URL.
    """
    given: GlobalOptions = ctx.obj
    if given.read_only:
        raise ReadOnlyRefused
    options = BenchOptions(
        scenarios=_scenarios(names or []),
        dsn=given.dsn,
        workers=workers,
        jobs=jobs,
        concurrency=concurrency,
        work=Work.parse(handler),
        rounds=rounds,
        duration=duration,
        rows=rows,
        share=share,
        capacity=capacity,
        producers=producers,
    )
    # As Ctrl-C does: what was made for the benchmark has to be dropped in any case.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    out = _console()
    report = run_bench(options, Console(stderr=True), _Printer(out))
    if json_file is not None:
        report.write_json(json_file)
    if svg_file is not None:
        svg_file.write_text(draw(report), encoding="utf-8")
    if any(result.failures for result in report.scenarios):
        raise typer.Exit(ExitCode.FAILED)


def _scenarios(names: list[str]) -> tuple[ScenarioName, ...]:
    if ALL in names:
        return tuple(ScenarioName)
    unknown = [name for name in names if name not in set(ScenarioName)]
    if unknown:
        raise UsageError(f"no scenario is called {', '.join(unknown)}: there are {', '.join(ScenarioName)} and {ALL}")
    return tuple(ScenarioName(name) for name in dict.fromkeys(names)) or (ScenarioName.DRAIN,)


class _Printer:
    """Prints the conditions once, and each scenario when it is over."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_first = True

    def __call__(self, conditions: Conditions, result: ScenarioResult) -> None:
        if self._is_first:
            self._console.print(conditions_text(conditions))
        self._is_first = False
        self._console.print()
        self._console.print(scenario_table(result))


def _console() -> Console:
    """A pipe gets lines of full length without colours."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(width=_PIPE_WIDTH, color_system=None, highlight=False)
