"""How runs look on paper."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from pgq_core.cli.output import duration, plain, print_json, print_json_line, print_table
from pgq_core.domain.clean import clean
from pgq_core.domain.snapshot import RunView

COLUMNS = (">ID", ">JOB", "QUEUE", "TYPE", "OUTCOME", ">NO", "ENDED", ">TOOK", "WORKER", "ERROR")


def print_runs(runs: Sequence[RunView], *, as_json: bool) -> None:
    if as_json:
        print_json([run_json(run) for run in runs])
        return
    print_table(COLUMNS, [_row(run) for run in runs], nothing="no runs")


def run_json(run: RunView) -> dict[str, object]:
    return {**plain(run), "duration_seconds": run.duration.total_seconds()}


def _row(run: RunView) -> tuple[object, ...]:
    return (
        run.id,
        run.job_id,
        run.queue,
        run.job_type,
        run.outcome,
        run.attempt,
        run.finished_at,
        duration(run.duration.total_seconds()),
        run.worker_id,
        run.error,
    )


def print_run_line(run: RunView, *, as_json: bool) -> None:
    """One run of a stream: columns that do not know what comes after them."""
    if as_json:
        print_json_line(run_json(run))
        return
    ended = run.finished_at.strftime("%H:%M:%S.") + f"{run.finished_at.microsecond // 1000:03d}"
    took = duration(run.duration.total_seconds())
    line = f"{ended} {run.outcome:<9} {run.job_type or '-'} job {run.job_id} #{run.attempt} {took} {run.worker_id}"
    typer.echo(clean(f"{line} {run.error[:300]}" if run.error else line))
