"""Errors as a person at a terminal sees them: one line on stderr, and an exit code that scripts can rely on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import NoReturn

import typer

from pgq_core.domain.clean import clean
from pgq_core.errors import (
    DatabaseUnavailable,
    InvalidJob,
    InvalidPayload,
    InvalidSettings,
    PgqError,
    ReadOnlyRefused,
    SchemaError,
)


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    DATABASE = 3
    REFUSED = 4


READ_ONLY_SQLSTATE = "25006"


class UsageError(PgqError):
    """A command line that cannot be carried out as it stands; nothing was changed."""


@contextlib.contextmanager
def explained(*, debug: bool) -> Iterator[None]:
    """Turns our errors and the driver's into a line and an exit code; with `debug` their traceback is shown instead."""
    try:
        yield
    except PgqError as error:
        if debug:
            raise
        fail(str(error), exit_code(error))
    except Exception as error:
        if debug or not _is_of_the_driver(error):
            raise
        fail(*_translated(error))


def fail(message: str, code: ExitCode) -> NoReturn:
    typer.echo(f"error: {clean(message.strip(), multiline=True)}", err=True)
    raise typer.Exit(code)


def exit_code(error: BaseException) -> ExitCode:
    match error:
        case ReadOnlyRefused():
            return ExitCode.REFUSED
        case DatabaseUnavailable() | SchemaError():
            return ExitCode.DATABASE
        case InvalidJob() | InvalidPayload() | InvalidSettings() | UsageError():
            return ExitCode.USAGE
        case PgqError() if type(error).__module__.startswith("pgq_core.embedded"):
            return ExitCode.DATABASE
        case PgqError():
            return ExitCode.FAILED
        case _:
            return ExitCode.DATABASE


def _is_of_the_driver(error: Exception) -> bool:
    # Asked by name, since importing the driver would cost every command that fails before it needs one.
    return any(base.__module__.startswith("psycopg") for base in type(error).__mro__)


def _translated(error: Exception) -> tuple[str, ExitCode]:
    import psycopg

    from pgq_core.database import first_line, translated

    if not isinstance(error, psycopg.Error):
        return first_line(error), ExitCode.DATABASE
    if error.sqlstate == READ_ONLY_SQLSTATE:
        return f"this database is read-only: {first_line(error)}", ExitCode.REFUSED
    known = translated(error)
    if isinstance(known, PgqError):
        return str(known), exit_code(known)
    return f"the database refused: {first_line(error)}", ExitCode.DATABASE
