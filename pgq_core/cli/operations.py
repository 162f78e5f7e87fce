"""`pgq-core operations`: what operators did."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.failures import ExitCode, fail
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, DryRun, Limit, Yes
from pgq_core.cli.output import plain, print_fields, print_json, print_table
from pgq_core.cli.session import Session, run
from pgq_core.cli.undoing import undo_operation
from pgq_core.domain.operation import OperationView

app = new_group("What operators did, who and why; and taking it back.")

OperationId = Annotated[int, typer.Argument(metavar="OPERATION")]
COLUMNS = (">ID", "AT", "OPERATOR", "ACTION", "TARGET", ">DONE", ">REFUSED", "UNDO", "REASON")
PAGE = 500


@app.command("list")
def list_operations(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List operators' actions, newest first."""

    async def read(session: Session) -> list[OperationView]:
        operations: list[OperationView] = []
        while more := (PAGE if not limit else min(PAGE, limit - len(operations))):
            before = {"before": operations[-1].id} if operations else {}
            page = await session.inspector.operations(session.conn, limit=more, **before)
            operations.extend(page)
            if len(page) < more:
                break
        return operations

    operations = run(ctx, read)
    if as_json:
        print_json(operations)
        return
    print_table(COLUMNS, [_row(operation) for operation in operations], nothing="no operator has done anything yet")


def _row(operation: OperationView) -> tuple[object, ...]:
    return (
        operation.id,
        operation.at,
        operation.operator,
        operation.action,
        operation.target,
        operation.affected,
        operation.refused,
        _undo_state(operation),
        operation.reason,
    )


def _undo_state(operation: OperationView) -> str:
    if operation.undone_at is not None:
        return f"undone by {operation.undone_by}"
    return "possible" if operation.can_be_undone else "-"


@app.command()
def show(ctx: typer.Context, operation_id: OperationId, as_json: AsJson = False) -> None:
    """Show one action with its parameters."""
    detail = run(ctx, lambda session: session.inspector.operation(session.conn, operation_id))
    if detail is None:
        fail(f"there is no operation {operation_id}", ExitCode.FAILED)
    operation = detail.operation
    if as_json:
        print_json({**plain(operation), "parameters": detail.parameters})
        return
    print_fields(
        (
            ("operation", operation.id),
            ("at", operation.at),
            ("operator", operation.operator),
            ("action", operation.action),
            ("target", operation.target),
            ("reason", operation.reason),
            ("done", operation.affected),
            ("refused", operation.refused),
            ("undo", _undo_state(operation)),
            *((name, str(value)) for name, value in dict(detail.parameters).items()),
        )
    )


@app.command()
def undo(
    ctx: typer.Context, operation_id: OperationId, dry: DryRun = False, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Take an action back, as far as the world has not moved on."""
    undo_operation(ctx, operation_id, dry=dry, yes=yes, as_json=as_json)
