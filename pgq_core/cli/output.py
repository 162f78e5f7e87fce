"""What commands print: data on stdout, as JSON or as a table; words on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum

import orjson
import typer

from pgq_core.domain.clean import clean
from pgq_core.domain.job import JSON
from pgq_core.domain.snapshot import Count

_PIPE_WIDTH = 10_000
_LONGEST_CELL = 300
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def say(words: str) -> None:
    """A sentence for a person, on stderr."""
    typer.echo(clean(words, multiline=True), err=True)


def print_text(text: str) -> None:
    """Foreign text on stdout: shown as it is, unable to do anything to the terminal."""
    typer.echo(clean(text, multiline=True))


def print_json(value: object) -> None:
    """One JSON document: times in ISO 8601, whole numbers exact, durations in seconds."""
    typer.echo(orjson.dumps(plain(value), option=orjson.OPT_INDENT_2))


def print_json_line(value: object) -> None:
    """One line of a stream of JSON documents."""
    typer.echo(orjson.dumps(plain(value)))
    sys.stdout.flush()


def plain(value: object) -> JSON:
    """Our values as JSON has them; field names stay."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case orjson.Fragment() | str() | int() | float() | None:
            return value
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Iterable():
            return [plain(item) for item in value]
        case _ if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise TypeError(f"{type(value).__name__} has no place in our JSON")


def raw_json(text: str) -> orjson.Fragment:
    """JSON text that goes out as it is, to the digit."""
    return orjson.Fragment(text.encode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, nothing: str) -> None:
    """Aligned columns; a terminal cuts them to its width, a pipe gets them whole. `nothing` is said without rows.

    A column whose name starts with ">" is aligned to the right.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        say(nothing)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(
            Text(name.removeprefix(">")),
            justify="right" if name.startswith(">") else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(
        markup=False,
        highlight=False,
        emoji=False,
        width=None if is_terminal else _PIPE_WIDTH,
        color_system="auto" if is_terminal else None,
    )
    with console.capture() as captured:
        console.print(table, crop=is_terminal)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values below each other; what is unknown is left out."""
    known = [(name, _cell(value)) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        typer.echo(f"{name:<{width}}  {value}")


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return clean(value[:_LONGEST_CELL])
        case Count():
            return f"{value.value}" if value.exact else f"{value.value}+"
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
        case timedelta():
            return duration(value.total_seconds())
        case float():
            return f"{value:.2f}"
        case _:
            return str(value)


def duration(seconds: float | None) -> str:
    """
    >>> [duration(s) for s in (0.0004, 0.25, 12.3, 75, 7260, 200_000)]
    ['0ms', '250ms', '12.3s', '1m15s', '2h01m', '2d7h']
    """
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR}h"
