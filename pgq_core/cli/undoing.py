"""Undo, which `operations` and `dead` share."""

from __future__ import annotations

import typer

from pgq_core.cli.consent import ask, progress, report_bulk
from pgq_core.cli.failures import ExitCode, fail
from pgq_core.cli.output import print_json, say
from pgq_core.cli.session import Session, run


def undo_operation(ctx: typer.Context, operation_id: int, *, dry: bool, yes: bool, as_json: bool) -> None:
    async def act(session: Session) -> None:
        detail = await session.inspector.operation(session.conn, operation_id)
        if detail is None:
            fail(f"there is no operation {operation_id}", ExitCode.FAILED)
        operation = detail.operation
        what = f"{operation.action} of {operation.target} by {operation.operator}"
        if dry:
            if as_json:
                print_json({"dry_run": True, "operation": operation})
            say(f"would undo operation {operation_id}: {what}; nothing was changed")
            return
        operations = session.operations
        if operation.can_be_undone and operation.undone_at is None and operation.affected > 1:
            ask(f"Undo operation {operation_id}: {what}?", yes=yes)
        with progress("undoing") as report:
            result = await operations.undo(session.conn, operation_id, progress=report)
        report_bulk(result, did=f"undone (operation {operation_id})", as_json=as_json)

    run(ctx, act)
