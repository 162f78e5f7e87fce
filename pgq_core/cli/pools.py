"""`pgq-core pools`: how many workers are wanted, on every host."""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from pgq_core.cli.consent import report_action
from pgq_core.cli.failures import UsageError
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, Reason
from pgq_core.cli.output import print_json, print_table, say
from pgq_core.cli.session import Session, run
from pgq_core.domain.operation import ActionResult
from pgq_core.domain.snapshot import PoolView

app = new_group("Worker pools: wanted and actual numbers.")

Pool = Annotated[str, typer.Argument(metavar="POOL")]
Host = Annotated[str | None, typer.Option("--host", help="The pool's host, where more than one has such a pool.")]
COLUMNS = ("HOST", "POOL", "QUEUES", ">WANTED", ">ALIVE", ">DRAINING", ">SLOTS", ">MIN", ">MAX", ">RESTARTS", "STATE")


@app.command("list")
def list_pools(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List pools."""
    overview = run(ctx, lambda session: session.inspector.overview(session.conn))
    if as_json:
        print_json(overview.pools)
        return
    print_table(COLUMNS, [_row(pool) for pool in overview.pools], nothing="no pools")


def _row(pool: PoolView) -> tuple[object, ...]:
    state = pool.state if pool.has_supervisor else f"{pool.state}, no supervisor"
    return (
        pool.host,
        pool.name,
        ",".join(pool.queues),
        pool.wanted,
        pool.alive,
        pool.draining,
        pool.concurrency,
        pool.minimum,
        pool.maximum,
        pool.restarts,
        f"{state}: {pool.state_detail}" if pool.state_detail else state,
    )


@app.command(context_settings={"ignore_unknown_options": True})  # -1 is a number here
def scale(
    ctx: typer.Context,
    *,
    pool: Pool,
    wanted: Annotated[str, typer.Argument(metavar="N|+N|-N", help="The wanted number, or a step up or down.")],
    host: Host = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Set how many workers a pool is to have."""
    if not re.fullmatch(r"[+-]?\d{1,6}", wanted):
        raise UsageError(f"{wanted!r} is no number of workers: write 4, +1 or -1")
    number = int(wanted)
    is_step = wanted[0] in "+-"

    async def verb(session: Session, on: str) -> ActionResult:
        scaling = session.operations.scale_by if is_step else session.operations.scale
        return await scaling(session.conn, on, pool, number, reason=reason)

    _change(ctx, pool, host, verb, f"pool {pool}: {wanted}", as_json=as_json)


@app.command()
def drain(ctx: typer.Context, pool: Pool, host: Host = None, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let all workers of a pool finish and end."""

    async def verb(session: Session, on: str) -> ActionResult:
        return await session.operations.drain_pool(session.conn, on, pool, reason=reason)

    _change(ctx, pool, host, verb, f"pool {pool} is to drain", as_json=as_json)


@app.command()
def restart(ctx: typer.Context, pool: Pool, host: Host = None, reason: Reason = None, as_json: AsJson = False) -> None:
    """Replace all workers of a pool; a pool in a crash loop tries again at once."""

    async def verb(session: Session, on: str) -> ActionResult:
        return await session.operations.restart_pool(session.conn, on, pool, reason=reason)

    _change(ctx, pool, host, verb, f"the workers of pool {pool} are to be replaced", as_json=as_json)


def _change(
    ctx: typer.Context,
    pool: str,
    host: str | None,
    verb: Callable[[Session, str], Awaitable[ActionResult]],
    did: str,
    *,
    as_json: bool,
) -> None:
    async def act(session: Session) -> None:
        pools = (await session.inspector.overview(session.conn)).pools
        on = host or _host_of(pool, pools)
        report_action(await verb(session, on), did=f"{did} on {on}", as_json=as_json)
        if any((view.host, view.name) == (on, pool) and not view.has_supervisor for view in pools):
            say(f"no supervisor carries it out now; on {on}: pgq-tui supervise")

    run(ctx, act)


def _host_of(pool: str, pools: Sequence[PoolView]) -> str:
    """The only host that has such a pool; this one where several have."""
    hosts = [view.host for view in pools if view.name == pool]
    here = socket.gethostname()
    if len(hosts) > 1 and here not in hosts:
        raise UsageError(f"pool {pool} is on {', '.join(hosts)}: name one with --host")
    return here if here in hosts or not hosts else hosts[0]
