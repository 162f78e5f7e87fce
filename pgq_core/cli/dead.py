"""`pgq-core dead`: what died, and what becomes of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from pgq_core.cli.consent import ask, progress, report_bulk
from pgq_core.cli.dead_files import export_to, import_from
from pgq_core.cli.dead_filters import (
    DiedOf,
    Everything,
    Fingerprint,
    NewerThan,
    OlderThan,
    filters_of,
    refuse_everything_by_accident,
)
from pgq_core.cli.dead_views import dry_run, print_detail, print_groups, print_letters
from pgq_core.cli.failures import ExitCode, UsageError, fail
from pgq_core.cli.groups import new_group
from pgq_core.cli.ids import parsed_ids
from pgq_core.cli.options import AsJson, Because, DryRun, JobType, Limit, Queue, Text, Yes
from pgq_core.cli.output import say
from pgq_core.cli.session import Session, run
from pgq_core.cli.times import parsed_span
from pgq_core.cli.undoing import undo_operation
from pgq_core.domain.filters import DeadLetterFilters, Resolution
from pgq_core.domain.operation import Preview
from pgq_core.domain.snapshot import DeadLetterView
from pgq_core.operations import automatic_spread

app = new_group("Dead letters: jobs that used up their attempts, or could never succeed.")

Ids = Annotated[list[str] | None, typer.Argument(help="Ids, or - for one per line on stdin.", show_default=False)]
PAGE = 500
SAMPLE = 10


@app.command("list")
def list_letters(
    ctx: typer.Context,
    *,
    queue: Queue = None,
    job_type: JobType = None,
    reason: DiedOf = None,
    fingerprint: Fingerprint = None,
    text: Text = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    state: Annotated[Resolution, typer.Option("--state", help="Which ones.")] = Resolution.UNRESOLVED,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first."""
    filters = filters_of(
        queue=queue,
        job_type=job_type,
        reason=reason,
        fingerprint=fingerprint,
        text=text,
        older_than=older_than,
        newer_than=newer_than,
        resolution=state,
    )

    async def read(session: Session) -> list[DeadLetterView]:
        letters: list[DeadLetterView] = []
        while more := (PAGE if not limit else min(PAGE, limit - len(letters))):
            before = {"before": letters[-1].id} if letters else {}
            page = await session.inspector.dead_letters(session.conn, filters, limit=more, **before)
            letters.extend(page)
            if len(page) < more:
                break
        return letters

    print_letters(run(ctx, read), as_json=as_json)


@app.command()
def groups(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Count unresolved dead letters by kind of failure."""
    print_groups(run(ctx, lambda session: session.inspector.dead_groups(session.conn)), as_json=as_json)


@app.command()
def show(
    ctx: typer.Context,
    *,
    dead_letter_id: Annotated[int, typer.Argument(metavar="ID")],
    payload_limit: Annotated[int, typer.Option(min=1, help="Longest payload that is shown, in characters.")] = 64
    * 1024,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: error, traceback, payload, attempts."""
    detail = run(
        ctx, lambda session: session.inspector.dead_letter(session.conn, dead_letter_id, payload_limit=payload_limit)
    )
    if detail is None:
        fail(f"there is no dead letter {dead_letter_id}", ExitCode.FAILED)
    print_detail(detail, as_json=as_json)


@app.command()
def replay(
    ctx: typer.Context,
    *,
    ids: Ids = None,
    queue: Queue = None,
    job_type: JobType = None,
    reason: DiedOf = None,
    fingerprint: Fingerprint = None,
    text: Text = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    everything: Everything = False,
    limit: Limit = 0,
    spread: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Over how long they become due (more than 100: 100 per second).")
    ] = None,
    payload: Annotated[
        Path | None,
        typer.Option(help="Replay one id with the payload in this JSON file (- for stdin).", allow_dash=True),
    ] = None,
    because: Because = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put dead letters back to work, with all attempts. Only those that match now, whatever dies meanwhile."""
    filters = filters_of(
        queue=queue,
        job_type=job_type,
        reason=reason,
        fingerprint=fingerprint,
        text=text,
        older_than=older_than,
        newer_than=newer_than,
    )
    wanted_spread = None if spread is None else parsed_span(spread)

    async def act(session: Session) -> None:
        chosen = await _chosen(session, ids, filters, everything=everything, limit=limit)
        span = automatic_spread(len(chosen.ids)) if wanted_spread is None else wanted_spread
        if dry:
            dry_run(await _looked_up(session, chosen), "would be replayed", as_json=as_json)
            return
        operations = session.operations
        if payload is not None:
            edited = await operations.edit_and_replay(
                session.conn, _only(chosen.ids), _text_of(payload), reason=because
            )
            report_bulk(edited, did="replayed with another payload", as_json=as_json)
            return
        _ask_for(chosen, "Replay", _over(span), ids, yes=yes)
        with progress("replaying") as report:
            result = await operations.replay(session.conn, chosen.ids, spread=span, reason=because, progress=report)
        report_bulk(result, did="replayed", as_json=as_json)

    run(ctx, act)


@app.command()
def discard(
    ctx: typer.Context,
    *,
    ids: Ids = None,
    queue: Queue = None,
    job_type: JobType = None,
    reason: DiedOf = None,
    fingerprint: Fingerprint = None,
    text: Text = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    everything: Everything = False,
    limit: Limit = 0,
    because: Because = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Resolve dead letters for good; `dead undo` takes it back."""
    filters = filters_of(
        queue=queue,
        job_type=job_type,
        reason=reason,
        fingerprint=fingerprint,
        text=text,
        older_than=older_than,
        newer_than=newer_than,
    )

    async def act(session: Session) -> None:
        chosen = await _chosen(session, ids, filters, everything=everything, limit=limit)
        if dry:
            dry_run(await _looked_up(session, chosen), "would be discarded", as_json=as_json)
            return
        operations = session.operations
        _ask_for(chosen, "Discard", "", ids, yes=yes)
        with progress("discarding") as report:
            result = await operations.discard(session.conn, chosen.ids, reason=because, progress=report)
        report_bulk(result, did="discarded", as_json=as_json)

    run(ctx, act)


@app.command()
def export(
    ctx: typer.Context,
    *,
    ids: Ids = None,
    queue: Queue = None,
    job_type: JobType = None,
    reason: DiedOf = None,
    fingerprint: Fingerprint = None,
    text: Text = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    everything: Everything = False,
    limit: Limit = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new file; - is stdout.", allow_dash=True)] = Path(
        "-"
    ),
) -> None:
    """Write dead letters to a file, one JSON document per line, payloads to the digit."""
    filters = filters_of(
        queue=queue,
        job_type=job_type,
        reason=reason,
        fingerprint=fingerprint,
        text=text,
        older_than=older_than,
        newer_than=newer_than,
    )

    async def act(session: Session) -> None:
        await export_to(session, await _chosen(session, ids, filters, everything=everything, limit=limit), output)

    run(ctx, act)


@app.command("import")
def import_letters(
    ctx: typer.Context,
    *,
    file: Annotated[Path, typer.Argument(help="What export wrote; - is stdin.", allow_dash=True)],
    because: Because = None,
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Add exported dead letters as unresolved ones; those that are here already are refused."""
    run(ctx, lambda session: import_from(session, file, reason=because, dry=dry, yes=yes, as_json=as_json))


@app.command()
def undo(
    ctx: typer.Context,
    *,
    operation_id: Annotated[int, typer.Argument(metavar="OPERATION")],
    dry: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take a replay or discard back, by its operation number."""
    undo_operation(ctx, operation_id, dry=dry, yes=yes, as_json=as_json)


async def _chosen(
    session: Session, given: list[str] | None, filters: DeadLetterFilters, *, everything: bool, limit: int
) -> Preview:
    """The frozen set that the command acts on: the ids given, or what matches now."""
    if given:
        if filters.narrows or everything:
            raise UsageError("name either ids or filters, not both")
        return Preview(tuple(parsed_ids(given)), ())
    refuse_everything_by_accident(filters, everything=everything)
    return await session.preview(filters, limit=limit or None)


async def _looked_up(session: Session, chosen: Preview) -> Preview:
    """Of ids that were typed: those that are unresolved dead letters. What filters found needs no second look."""
    if chosen.sample or not chosen.ids:
        return chosen
    letters = []
    for dead_letter_id in chosen.ids:
        detail = await session.inspector.dead_letter(session.conn, dead_letter_id, payload_limit=1)
        if detail is None:
            say(f"{dead_letter_id}: there is no dead letter {dead_letter_id}")
        elif detail.letter.resolution is not None:
            say(f"{dead_letter_id}: already {detail.letter.resolution} by {detail.letter.resolved_by}")
        else:
            letters.append(detail.letter)
    return Preview(tuple(letter.id for letter in letters), tuple(letters[:SAMPLE]))


def _ask_for(chosen: Preview, verb: str, how: str, given: list[str] | None, *, yes: bool) -> None:
    """One id that was typed is consent enough."""
    if chosen.count and not (given and given != ["-"] and chosen.count == 1):
        noun = "dead letter" if chosen.count == 1 else "dead letters"
        ask(f"{verb} {chosen.count} {noun}{how}?", yes=yes)


def _over(span: timedelta) -> str:
    return f", due evenly over {span.total_seconds():g} s" if span else ""


def _only(ids: Collection[int]) -> int:
    if len(ids) != 1:
        raise UsageError("--payload goes with exactly one id")
    return next(iter(ids))


def _text_of(file: Path) -> str:
    try:
        return typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
