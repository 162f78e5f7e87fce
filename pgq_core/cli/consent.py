"""Asking before something is changed, telling how far it is, and what came of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import typer

from pgq_core.cli.failures import ExitCode, UsageError
from pgq_core.cli.output import print_json, say
from pgq_core.domain.clean import clean
from pgq_core.domain.operation import ActionResult, BulkResult

_REFUSALS_SHOWN = 20
_LINE_EVERY = 2.0


def ask(question: str, *, yes: bool) -> None:
    """Goes on only with consent. Without a terminal to ask on, `--yes` has to be on the command line."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to ask on: add --yes, or look first with --dry-run.")
    if not typer.confirm(clean(question), err=True):
        say("nothing was changed")
        raise typer.Exit(ExitCode.FAILED)


@contextlib.contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, now and then a line elsewhere; short work shows neither."""
    if sys.stderr.isatty():
        with _bar(words) as report:
            yield report
    else:
        yield _lines(words)


@contextlib.contextmanager
def _bar(words: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(words, markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(words: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        if done < total and time.monotonic() - last > _LINE_EVERY:
            last = time.monotonic()
            say(f"{words}: {done} of {total}")

    return report


def report_bulk(result: BulkResult, *, did: str, as_json: bool) -> None:
    """What became of a bulk verb. Ends the command with exit code 1 when anything was refused."""
    if as_json:
        print_json(
            {
                "operation_id": result.operation_id,
                "done": result.done,
                "refused": result.refused,
                "items": result.items,
            }
        )
    else:
        for item in result.items:
            if item.job_id is not None:
                typer.echo(item.job_id)
    refusals = [item for item in result.items if item.refusal is not None]
    for item in refusals[:_REFUSALS_SHOWN]:
        say(f"{item.id}: {item.refusal}")
    if len(refusals) > _REFUSALS_SHOWN:
        say(f"... and {len(refusals) - _REFUSALS_SHOWN} more refusals")
    refused = f", {result.refused} refused" if refusals else ""
    operation = f" (operation {result.operation_id})" if result.operation_id is not None else ""
    say(f"{did}: {result.done}{refused}{operation}")
    if refusals:
        raise typer.Exit(ExitCode.FAILED)


def report_action(result: ActionResult, *, did: str, as_json: bool) -> None:
    """What became of a verb on one thing. Ends the command with exit code 1 when it was refused."""
    if as_json:
        print_json(result)
    if result.refusal is not None:
        say(f"error: {result.refusal}")
        raise typer.Exit(ExitCode.FAILED)
    say(f"{did} (operation {result.operation_id})")
