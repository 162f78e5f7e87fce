"""Which dead letters a command is about: the options, and the filters they make."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from pgq_core.cli.failures import UsageError
from pgq_core.cli.times import parsed_span
from pgq_core.domain.filters import NO_FINGERPRINT, DeadLetterFilters, Resolution
from pgq_core.domain.job import DeathReason

DiedOf = Annotated[DeathReason | None, typer.Option("--reason", help="Only those that died for this reason.")]
Fingerprint = Annotated[
    str | None,
    typer.Option("--fingerprint", "-f", help='Only this kind of failure (see groups); "none" for those without.'),
]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="SPAN", help="Died longer ago, such as 2h or 7d.")
]
NewerThan = Annotated[str | None, typer.Option("--newer-than", metavar="SPAN", help="Died more recently.")]
Everything = Annotated[bool, typer.Option("--all", help="All unresolved dead letters.")]


def filters_of(
    *,
    queue: str | None,
    job_type: str | None,
    reason: DeathReason | None,
    fingerprint: str | None,
    text: str | None,
    older_than: str | None,
    newer_than: str | None,
    resolution: Resolution = Resolution.UNRESOLVED,
) -> DeadLetterFilters:
    return DeadLetterFilters(
        queue=queue,
        job_type=job_type,
        reason=reason.value if reason else None,
        fingerprint=NO_FINGERPRINT if fingerprint == "none" else fingerprint,
        text=text or None,
        died_before=_ago(older_than),
        died_after=_ago(newer_than),
        resolution=resolution,
    )


def refuse_everything_by_accident(filters: DeadLetterFilters, *, everything: bool) -> None:
    """All of them has to be said: a forgotten filter must not empty the table."""
    if not everything and not filters.narrows:
        raise UsageError("name ids or filters (--queue, --type, --fingerprint, ...), or say --all")
    if everything and filters.narrows:
        raise UsageError("--all goes with no other filter")


def _ago(span: str | None) -> datetime | None:
    return datetime.now(UTC) - parsed_span(span) if span else None
