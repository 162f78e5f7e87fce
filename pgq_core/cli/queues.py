"""`pgq-core queues`: what lies in them, holding them, and what they write down."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from pgq_core.cli.consent import ask, progress, report_action
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, DryRun, Reason, Yes
from pgq_core.cli.output import duration, print_json, print_table, say
from pgq_core.cli.session import Session, run
from pgq_core.domain.audit import Audit, checked_rule, kept_runs
from pgq_core.domain.operation import PurgePreview
from pgq_core.domain.snapshot import Count, Overview, QueueView

app = new_group("Queues: depth, rates, pause.")

Name = Annotated[str, typer.Argument(metavar="QUEUE")]
COLUMNS = (
    *("QUEUE", "STATE", ">PENDING", ">OLDEST", ">SCHEDULED", ">WAITING", ">RUNNING", ">SLOTS", ">DEAD"),
    *(">PER S", ">P50", ">P95", ">FAILED"),
)


@app.command("list")
def list_queues(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List queues with their depth and the rates of the last minute. A number with + is counted no further."""
    overview = run(ctx, lambda session: session.inspector.overview(session.conn))
    print_queues(overview, as_json=as_json)


def print_queues(overview: Overview, *, as_json: bool) -> None:
    if as_json:
        print_json(overview.queues)
        return
    print_table(COLUMNS, [_row(queue, overview) for queue in overview.queues], nothing="no queues yet")
    for queue in overview.queues:
        if queue.audit is not Audit.ALL:
            say(f"{queue.name}: keeps {kept_runs(queue.audit, queue.audit_sample)} in job_runs")
        for job_type in queue.unknown_types:
            say(f"{queue.name}: no worker knows type {job_type}: pass its module to pgq-core worker --app")


def _row(queue: QueueView, overview: Overview) -> tuple[object, ...]:
    oldest = queue.oldest_pending_at
    return (
        queue.name,
        f"paused by {queue.paused_by}" if queue.paused else "open",
        queue.pending,
        duration((overview.taken_at - oldest).total_seconds()) if oldest else "-",
        queue.scheduled,
        queue.waiting,
        queue.running,
        queue.capacity,
        queue.dead,
        queue.rate_out,
        duration(queue.p50),
        duration(queue.p95),
        "-" if queue.failure_share is None else f"{queue.failure_share:.1%}",
    )


@app.command()
def pause(ctx: typer.Context, queue: Name, reason: Reason = None, as_json: AsJson = False) -> None:
    """Stop claims from a queue; what runs goes on."""

    async def act(session: Session) -> None:
        await _say_when_unknown(session, queue)
        result = await session.operations.pause(session.conn, queue, reason)
        report_action(result, did=f"queue {queue} is paused", as_json=as_json)

    run(ctx, act)


@app.command()
def resume(ctx: typer.Context, queue: Name, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let claims from a paused queue go on."""

    async def act(session: Session) -> None:
        result = await session.operations.resume(session.conn, queue, reason)
        report_action(result, did=f"queue {queue} is open", as_json=as_json)

    run(ctx, act)


@app.command("set")
def set_queue(
    ctx: typer.Context,
    *,
    queue: Name,
    audit: Annotated[Audit, typer.Option(help="Which runs leave a row in job_runs.")],
    share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="With sample: the share of plain successes kept, above 0 up to 1 (0.01)."),
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Set what a queue writes down: all runs, failures, or failures and a sample of successes. Statistics count all."""

    async def act(session: Session) -> None:
        await _say_when_unknown(session, queue)
        result = await session.operations.set_audit(session.conn, queue, audit, share=share, reason=reason)
        rule = checked_rule(audit, share)
        report_action(result, did=f"queue {queue} keeps {kept_runs(rule.audit, rule.sample)}", as_json=as_json)

    run(ctx, act)


async def _say_when_unknown(session: Session, queue: str) -> None:
    """A queue may be set before its first job; more often its name was mistyped."""
    names = [view.name for view in (await session.inspector.overview(session.conn)).queues]
    if queue not in names:
        near = difflib.get_close_matches(queue, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        say(f"queue {queue} has no job, no worker and no pool so far{hint}")


@app.command()
def purge(
    ctx: typer.Context,
    *,
    queue: Name,
    reason: Reason = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel every job of a queue that does not run and is there now. Cannot be undone."""

    async def act(session: Session) -> None:
        preview = await session.preview_purge(queue)
        if dry:
            _print_dry_run(preview, as_json=as_json)
            return
        operations = session.operations
        if preview.jobs.value:
            ask(f"Cancel {_about(preview.jobs)} jobs of queue {queue} for good?", yes=yes)
        with progress("purging") as report:
            result = await operations.purge(session.conn, preview, reason=reason, progress=report)
        report_action(result, did=f"cancelled {result.affected} jobs of queue {queue}", as_json=as_json)

    run(ctx, act)


def _print_dry_run(preview: PurgePreview, *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "queue": preview.queue, "count": preview.jobs})
    say(f"{_about(preview.jobs)} jobs of queue {preview.queue} would be cancelled; nothing was changed")


def _about(count: Count) -> str:
    return f"{count.value}" if count.exact else f"more than {count.value}"
