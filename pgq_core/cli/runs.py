"""`pgq-core runs`: what ran, newest first."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.failures import ExitCode, fail
from pgq_core.cli.following import follow
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, JobType, Limit, Queue, Text
from pgq_core.cli.output import plain, print_fields, print_json, print_text, raw_json
from pgq_core.cli.run_views import print_runs, run_json
from pgq_core.cli.session import Session, run
from pgq_core.domain.filters import RunFilters
from pgq_core.domain.job import Outcome
from pgq_core.domain.snapshot import RunDetail, RunView

app = new_group("Closed runs: one per attempt.")

PAGE = 500
POLL = 0.5

Outcomes = Annotated[list[Outcome] | None, typer.Option("--outcome", "-o", help="Only this outcome (repeatable).")]
Worker = Annotated[str | None, typer.Option("--worker", "-w", help="Only runs of this worker.")]
OfJob = Annotated[int | None, typer.Option("--job", "-j", help="Only runs of this job.")]
Poll = Annotated[float, typer.Option(min=0.05, max=3600, help="Seconds between looks while following.")]


@app.command("list")
def list_runs(
    ctx: typer.Context,
    *,
    queue: Queue = None,
    job_type: JobType = None,
    outcome: Outcomes = None,
    worker: Worker = None,
    job: OfJob = None,
    text: Text = None,
    limit: Limit = 50,
    follow_on: Annotated[bool, typer.Option("--follow", help="Go on with new runs as they end.")] = False,
    poll: Poll = POLL,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first; with --follow oldest first, and on and on."""
    filters = run_filters(queue=queue, job_type=job_type, outcomes=outcome, worker=worker, job=job, text=text)
    if follow_on:
        follow(ctx, filters, recent=limit, poll=poll, as_json=as_json)
        return

    async def read(session: Session) -> list[RunView]:
        runs: list[RunView] = []
        while more := (PAGE if not limit else min(PAGE, limit - len(runs))):
            before = {"before": runs[-1].id} if runs else {}
            page = await session.inspector.latest_runs(session.conn, more, filters, **before)
            runs.extend(page)
            if len(page) < more or filters.job_id is not None:
                break
        return runs

    print_runs(run(ctx, read), as_json=as_json)


@app.command()
def show(ctx: typer.Context, run_id: Annotated[int, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Show one run with its error, traceback and result."""
    detail = run(ctx, lambda session: session.inspector.run(session.conn, run_id))
    if detail is None:
        fail(f"there is no run {run_id} (it may be past retention)", ExitCode.FAILED)
    if as_json:
        print_json(_detail_json(detail))
    else:
        _print_detail(detail)


def run_filters(
    *,
    queue: str | None,
    job_type: str | None,
    outcomes: list[Outcome] | None,
    worker: str | None,
    job: int | None,
    text: str | None,
) -> RunFilters:
    return RunFilters(
        queue=queue,
        job_type=job_type,
        outcomes=tuple(outcome.value for outcome in outcomes or ()),
        worker_id=worker,
        job_id=job,
        text=text or None,
    )


def _detail_json(detail: RunDetail) -> dict[str, object]:
    rest = plain(detail)
    del rest["run"]
    is_whole = detail.result_text is not None and detail.result_size <= len(detail.result_text.encode())
    return {
        **run_json(detail.run),
        **rest,
        "result": raw_json(detail.result_text) if is_whole and detail.result_text is not None else None,
    }


def _print_detail(detail: RunDetail) -> None:
    ended = detail.run
    print_fields(
        (
            ("run", ended.id),
            ("job", ended.job_id),
            ("queue", ended.queue),
            ("type", ended.job_type),
            ("outcome", ended.outcome),
            ("attempt", ended.attempt),
            ("worker", ended.worker_id),
            ("enqueued", ended.enqueued_at),
            ("due", ended.due_at),
            ("started", ended.started_at),
            ("took", ended.duration),
            ("replay of", ended.replayed_from),
        )
    )
    for title, text in (("error", ended.error), ("traceback", detail.traceback), ("result", detail.result_text)):
        if text:
            print_text(f"\n{title}:\n{text}")
