"""`pgq-core stats`: the picture of the dashboard, in numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson
from pgq_core.cli.output import duration, print_fields, print_json, print_text
from pgq_core.cli.queues import print_queues
from pgq_core.cli.session import run
from pgq_core.domain.snapshot import Overview
from pgq_core.domain.window import WINDOWS

app = new_command()

Window = StrEnum("Window", {name: name for name in WINDOWS})  # type: ignore[misc]  # made from the one list


@app.command()
def stats(
    ctx: typer.Context,
    *,
    window: Annotated[Window, typer.Option(help="How far back the throughput goes.")] = Window("15m"),
    as_json: AsJson = False,
) -> None:
    """Queues, workers, throughput and the server, in one picture."""
    overview = run(ctx, lambda session: session.inspector.overview(session.conn, WINDOWS[window.value]))
    if as_json:
        print_json(overview)
        return
    _print_totals(overview, window.value)
    print_text("")
    print_queues(overview, as_json=False)


def _print_totals(overview: Overview, window: str) -> None:
    points = overview.throughput
    succeeded, retried, dead, lost = (
        sum(getattr(point, name) for point in points) for name in ("succeeded", "retried", "dead", "lost")
    )
    alive = [worker for worker in overview.workers if worker.stopped_at is None and not worker.is_stale]
    server = overview.server
    print_fields(
        (
            ("database", f"{server.user}@{server.host}/{server.database}, PostgreSQL {server.version}"),
            ("ping", duration(server.ping)),
            ("workers", f"{len(alive)} alive, {sum(worker.running for worker in alive)} jobs running"),
            (f"runs in {window}", f"{succeeded} succeeded, {retried} retried, {dead} dead, {lost} lost"),
            ("dead letters", overview.dead_unresolved),
            (
                "held back",
                f"vacuum, for {duration(overview.holder_age)}, by {overview.holder}" if overview.holder else None,
            ),
        )
    )
