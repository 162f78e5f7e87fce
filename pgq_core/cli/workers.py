"""`pgq-core workers`: who runs jobs, and asking them to stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from pgq_core.cli.consent import report_action
from pgq_core.cli.failures import ExitCode, fail
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, Reason
from pgq_core.cli.output import duration, print_json, print_table, print_text, say
from pgq_core.cli.session import Session, run
from pgq_core.domain.operation import ActionResult
from pgq_core.domain.snapshot import Overview, RunningView, WorkerView

app = new_group("Workers: live ones, and those that ended in the last ten minutes.")

WorkerId = Annotated[str, typer.Argument(metavar="WORKER")]
COLUMNS = (
    "WORKER",
    "STATE",
    "POOL",
    "QUEUES",
    ">RUNNING",
    ">SLOTS",
    ">DONE",
    ">FAILED",
    ">CPU%",
    ">MB",
    ">UP",
    ">BEAT",
    "LOOPS",
    "EXIT",
)


@app.command("list")
def list_workers(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List workers."""
    overview = run(ctx, lambda session: session.inspector.overview(session.conn))
    if as_json:
        print_json(overview.workers)
        return
    print_table(COLUMNS, [_row(worker, overview) for worker in overview.workers], nothing="no workers")


def _row(worker: WorkerView, overview: Overview) -> tuple[object, ...]:
    until = worker.stopped_at or overview.taken_at
    return (
        worker.id,
        "stale" if worker.is_stale else worker.state,
        worker.pool,
        ",".join(worker.queues),
        worker.running,
        worker.concurrency,
        worker.finished,
        worker.failed,
        "-" if worker.cpu_percent is None else f"{worker.cpu_percent:.0f}",
        "-" if worker.rss_bytes is None else f"{worker.rss_bytes / 1e6:.0f}",
        duration((until - worker.started_at).total_seconds()),
        duration((overview.taken_at - worker.heartbeat_at).total_seconds()),
        _loops(worker),
        worker.exit_signal or worker.exit_reason or ("-" if worker.exit_code is None else str(worker.exit_code)),
    )


def _loops(worker: WorkerView) -> str:
    """The loops that have stopped turning, each with the age of its last good turn."""
    if worker.stalled_loops:
        return ", ".join(f"{loop.name} stalled {duration(loop.age)}" for loop in worker.stalled_loops)
    return "ok" if worker.loops else "-"


@app.command()
def show(ctx: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Show what one worker runs now."""
    running = run(ctx, lambda session: session.inspector.running_jobs(session.conn, worker_id=worker_id))
    if as_json:
        print_json(running)
        return
    rows = [_running_row(job) for job in running]
    print_table((">JOB", "QUEUE", "TYPE", ">NO", "CLAIMED", "STATE"), rows, nothing=f"worker {worker_id} runs nothing")


def _running_row(job: RunningView) -> tuple[object, ...]:
    state = "asked to stop" if job.cancel_requested else "orphan" if job.is_orphan else "running"
    return job.job_id, job.queue, job.job_type, job.attempt, job.locked_at, state


@app.command()
def log(ctx: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Print the last lines that a worker wrote, as its keeper recorded them."""
    output = run(ctx, lambda session: session.inspector.worker_output(session.conn, worker_id))
    if output is None:
        fail(f"there is no worker {worker_id}", ExitCode.FAILED)
    if as_json:
        print_json({"worker_id": worker_id, "output": output})
    elif output:
        print_text(output.rstrip("\n"))
    else:
        say(f"nothing is recorded of worker {worker_id}: one that was started by hand writes to its own terminal")


@app.command()
def drain(ctx: typer.Context, worker_id: WorkerId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let a worker finish what it runs, and end."""
    _ask(
        ctx, lambda s: s.operations.drain_worker(s.conn, worker_id, reason=reason), f"{worker_id} is to drain", as_json
    )


@app.command()
def stop(ctx: typer.Context, worker_id: WorkerId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Make a worker hand back what it runs, unspent, and end."""
    _ask(ctx, lambda s: s.operations.stop_worker(s.conn, worker_id, reason=reason), f"{worker_id} is to stop", as_json)


@app.command()
def restart(ctx: typer.Context, worker_id: WorkerId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Drain a worker and start another in its place."""
    _ask(
        ctx,
        lambda s: s.operations.restart_worker(s.conn, worker_id, reason=reason),
        f"{worker_id} is to be replaced",
        as_json,
    )


def _ask(ctx: typer.Context, verb: Callable[[Session], Awaitable[ActionResult]], did: str, as_json: bool) -> None:
    async def act(session: Session) -> None:
        report_action(await verb(session), did=did, as_json=as_json)

    run(ctx, act)
