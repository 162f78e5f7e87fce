"""`pgq-core enqueue`: add a job from a shell."""

from __future__ import annotations

import difflib
import sys
from datetime import datetime, timedelta
from typing import Annotated

import typer

from pgq_core.cli.failures import UsageError
from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson
from pgq_core.cli.output import print_json, say
from pgq_core.cli.session import Session, run
from pgq_core.cli.times import parsed_span, parsed_time
from pgq_core.domain.job import JSON
from pgq_core.domain.payload import decode
from pgq_core.errors import InvalidPayload, ReadOnlyRefused
from pgq_core.handlers import Registry
from pgq_core.job_queue import AsyncJobQueue, EnqueuedJob

app = new_command()

_MOST_NAMES = 1000


@app.command()
def enqueue(
    ctx: typer.Context,
    *,
    job_type: Annotated[str, typer.Argument(metavar="TYPE")],
    data: Annotated[str, typer.Argument(metavar="[DATA|-]", help="The job's data as JSON; - reads stdin.")] = "{}",
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Queue (the type's own, else default).")] = None,
    priority: Annotated[int, typer.Option("--priority", "-p", help="-32768 to 32767; higher runs first.")] = 0,
    delay: Annotated[str | None, typer.Option(metavar="SPAN", help="Due after this span, such as 15m.")] = None,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Due at this time (ISO 8601; UTC without offset).")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Idempotency key: a second call finds the first job.")
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Attempts before the job is dead.")] = None,
    timeout: Annotated[str | None, typer.Option(metavar="SPAN", help="Longest run of one attempt; 0 = none.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a job and print its id."""
    if delay is not None and not_before is not None:
        raise UsageError("say either --delay or --not-before")
    value = _data(data)
    start: dict[str, timedelta | datetime] = {}
    if delay is not None:
        start["delay"] = parsed_span(delay)
    if not_before is not None:
        start["not_before"] = parsed_time(not_before)

    async def act(session: Session) -> EnqueuedJob:
        if session.settings.read_only:
            raise ReadOnlyRefused
        await _say_when_unknown(session, job_type)
        producer = AsyncJobQueue(session.database.dsn, schema=session.database.schema, registry=Registry())
        return await producer.enqueue(
            job_type,
            value,
            queue=queue,
            priority=priority,
            idempotency_key=key,
            max_attempts=max_attempts,
            timeout=None if timeout is None else parsed_span(timeout),
            conn=session.conn,
            **start,  # type: ignore[arg-type]  # either of the two, each of its own type
        )

    job = run(ctx, act)
    if as_json:
        print_json(job)
        return
    typer.echo(job.id)
    if not job.created:
        say(f"key {key} was taken already by job {job.id}: nothing was added")


async def _say_when_unknown(session: Session, job_type: str) -> None:
    """The worker may come later; more often the name was mistyped, and the job would wait for ever."""
    names = await session.queries.list_type_names(limit=_MOST_NAMES).fetch_all(session.conn)
    if names and job_type not in names:
        near = difflib.get_close_matches(job_type, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        say(f"no worker ever announced the type {job_type}{hint}")


def _data(text: str) -> JSON:
    try:
        return decode(sys.stdin.buffer.read() if text == "-" else text)
    except InvalidPayload as error:
        raise UsageError(f"the data is no JSON: {error} (a file goes in by -: enqueue TYPE - < FILE)") from None
