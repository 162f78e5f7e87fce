"""Dead letters as a file: one JSON document per line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pgq_core.cli.consent import ask, progress, report_bulk
from pgq_core.cli.failures import UsageError
from pgq_core.cli.output import print_json, say
from pgq_core.cli.session import Session
from pgq_core.domain.operation import Preview
from pgq_core.operations import fault_of

PAGE = 500


async def export_to(session: Session, chosen: Preview, output: Path) -> None:
    """Oldest first; `-` is stdout. What was discarded or replayed meanwhile is still in the file, marked so."""
    ids = sorted(chosen.ids)
    written = 0
    with _opened(output) as file, progress("exporting") as report:
        for start in range(0, len(ids), PAGE):
            lines = await session.inspector.exported_dead_letters(session.conn, ids[start : start + PAGE])
            file.write("".join(f"{line}\n" for line in lines).encode())
            written += len(lines)
            report(written, len(ids))
    say(f"exported {written} dead letters")


async def import_from(session: Session, file: Path, *, reason: str | None, dry: bool, yes: bool, as_json: bool) -> None:
    documents = list(_lines_of(file))
    if dry:
        faults = {line: fault for line, text in enumerate(documents, start=1) if (fault := fault_of(text))}
        if as_json:
            print_json({"dry_run": True, "count": len(documents) - len(faults), "faults": faults})
        for line, fault in faults.items():
            say(f"line {line}: {fault}")
        say(f"{len(documents) - len(faults)} of {len(documents)} lines could be imported; nothing was changed")
        return
    operations = session.operations
    ask(f"Import {len(documents)} dead letters?", yes=yes)
    with progress("importing") as report:
        result = await operations.import_letters(session.conn, documents, reason=reason, progress=report)
    report_bulk(result, did="imported", as_json=as_json)


@contextlib.contextmanager
def _opened(output: Path) -> Iterator[BinaryIO]:
    if str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with _created(output) as file:
        yield file


def _created(output: Path) -> BinaryIO:
    try:
        return output.open("xb")
    except FileExistsError:
        raise UsageError(f"{output} exists already: it is not overwritten") from None
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


def _lines_of(file: Path) -> Iterator[str]:
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    # Only real line ends: JSON text may hold other characters that str.splitlines takes for one.
    return (line.decode("utf-8", "replace") for line in text.split(b"\n") if line.strip())
