"""`pgq-core tail`: runs as they end."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.following import follow
from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson, JobType, Queue, Text
from pgq_core.cli.runs import POLL, OfJob, Outcomes, Poll, Worker, run_filters

app = new_command()


@app.command()
def tail(
    ctx: typer.Context,
    *,
    queue: Queue = None,
    job_type: JobType = None,
    outcome: Outcomes = None,
    worker: Worker = None,
    job: OfJob = None,
    text: Text = None,
    recent: Annotated[int, typer.Option("--recent", "-n", min=0, help="Begin with so many past runs.")] = 10,
    poll: Poll = POLL,
    as_json: AsJson = False,
) -> None:
    """Follow runs as they end, one line each; --json prints one JSON document per line. Ctrl-C ends it."""
    filters = run_filters(queue=queue, job_type=job_type, outcomes=outcome, worker=worker, job=job, text=text)
    follow(ctx, filters, recent=recent, poll=poll, as_json=as_json)
