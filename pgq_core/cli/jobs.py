"""`pgq-core jobs`: live jobs, and what an operator may do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pgq_core.cli.consent import ask, progress, report_bulk
from pgq_core.cli.failures import ExitCode, UsageError, fail
from pgq_core.cli.groups import new_group
from pgq_core.cli.ids import parsed_ids
from pgq_core.cli.job_views import print_dry_run, print_jobs, print_record, say_unknown_types
from pgq_core.cli.options import AsJson, DryRun, JobType, Limit, Queue, Reason, Yes
from pgq_core.cli.session import Session, run
from pgq_core.cli.times import parsed_span, parsed_time
from pgq_core.domain.filters import JobFilters
from pgq_core.domain.job import JobStatus
from pgq_core.domain.snapshot import JobRecord, JobView
from pgq_core.errors import JobNotFound

app = new_group("Live jobs: pending, scheduled, waiting, running.")

Ids = Annotated[list[str], typer.Argument(help="Job ids, or - for one per line on stdin.")]
PAGE = 500


@app.command("list")
def list_jobs(
    ctx: typer.Context,
    *,
    status: Annotated[JobStatus | None, typer.Option("--status", "-s", help="Only in this state.")] = None,
    queue: Queue = None,
    job_type: JobType = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List jobs: in the order they will run where a state is asked for, else newest first."""
    filters = JobFilters(status=status.value if status else None, queue=queue, job_type=job_type)

    async def read(session: Session) -> list[JobView]:
        jobs: list[JobView] = []
        after = None
        while more := (PAGE if not limit else min(PAGE, limit - len(jobs))):
            page = await session.inspector.jobs(session.conn, filters, limit=more, after=after)
            jobs.extend(page.jobs)
            after = page.next
            if after is None:
                break
        return jobs

    jobs = run(ctx, read)
    print_jobs(jobs, as_json=as_json)
    say_unknown_types(jobs)


@app.command()
def show(ctx: typer.Context, job_id: Annotated[int, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Show everything known about one job, in whatever state it is."""
    record = run(ctx, lambda session: session.inspector.job_record(session.conn, job_id))
    if record is None:
        fail(str(JobNotFound(job_id)), ExitCode.FAILED)
    print_record(record, as_json=as_json)


@app.command()
def cancel(
    ctx: typer.Context,
    *,
    ids: Ids,
    reason: Reason = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End jobs that do not run; ask the workers of those that do. Cannot be undone."""

    async def act(session: Session) -> None:
        job_ids = parsed_ids(ids)
        if dry:
            print_dry_run(await _records(session, job_ids), job_ids, "would be cancelled", as_json=as_json)
            return
        operations = session.operations
        _ask_for(job_ids, ids, "Cancel", yes=yes)
        with progress("cancelling") as report:
            result = await operations.cancel(session.conn, job_ids, reason=reason, progress=report)
        report_bulk(result, did="cancelled, or asked to stop", as_json=as_json)

    run(ctx, act)


@app.command()
def move(
    ctx: typer.Context,
    *,
    ids: Ids,
    to: Annotated[str, typer.Option("--to", metavar="QUEUE", help="The queue to put them into.")],
    reason: Reason = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put jobs that do not run into another queue."""

    async def act(session: Session) -> None:
        job_ids = parsed_ids(ids)
        if dry:
            print_dry_run(await _records(session, job_ids), job_ids, f"would move to {to}", as_json=as_json)
            return
        operations = session.operations
        _ask_for(job_ids, ids, f"Move to queue {to}:", yes=yes)
        with progress("moving") as report:
            result = await operations.move(session.conn, job_ids, to, reason=reason, progress=report)
        report_bulk(result, did=f"moved to {to}", as_json=as_json)

    run(ctx, act)


@app.command()
def reschedule(
    ctx: typer.Context,
    *,
    ids: Ids,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Due at this time (ISO 8601; UTC without offset).")
    ] = None,
    within: Annotated[
        str | None, typer.Option("--in", metavar="SPAN", help="Due after this span, such as 15m.")
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Due at once.")] = False,
    reason: Reason = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give jobs that do not run another due time."""
    if (at is not None) + (within is not None) + now != 1:
        raise UsageError("say when: --at TIME, --in SPAN or --now")
    given_time = parsed_time(at) if at is not None else None
    span = parsed_span(within) if within is not None else None

    async def act(session: Session) -> None:
        job_ids = parsed_ids(ids)
        if dry:
            print_dry_run(await _records(session, job_ids), job_ids, "would be rescheduled", as_json=as_json)
            return
        operations = session.operations
        _ask_for(job_ids, ids, "Reschedule", yes=yes)
        when = given_time if span is None else await session.database_time() + span
        with progress("rescheduling") as report:
            result = await operations.reschedule(session.conn, job_ids, when, reason=reason, progress=report)
        report_bulk(result, did="rescheduled", as_json=as_json)

    run(ctx, act)


async def _records(session: Session, job_ids: Sequence[int]) -> list[JobRecord]:
    found = [await session.inspector.job_record(session.conn, job_id) for job_id in job_ids]
    return [record for record in found if record is not None and record.live is not None]


def _ask_for(job_ids: Sequence[int], given: Sequence[str], verb: str, *, yes: bool) -> None:
    """One id that was typed is consent enough."""
    if len(job_ids) > 1 or list(given) == ["-"]:
        ask(f"{verb} {len(job_ids)} job{'s' if len(job_ids) != 1 else ''}?", yes=yes)
