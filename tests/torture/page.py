"""Puts the lines of the runs into docs/failure-modes.md, so that no figure there is typed by hand.

    python -m tests.torture.page [build/torture.jsonl ...]

Of each run the newest line that passed is kept in docs/torture.jsonl; the line of a short form never takes the place
of a long one's. The page shows them where it says `<!-- measured: NAME; NAME -->`, all of them at `measured: all`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.torture.report import results_file

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "failure-modes.md"
KEPT = DOCS / "torture.jsonl"
MARKED = re.compile(r"<!-- measured: (?P<names>[^>]+) -->\n(?P<body>.*?)<!-- /measured -->", re.DOTALL)
HEAD = "| run | form | date, load average | measured |\n|---|---|---|---|\n"

Record = dict[str, Any]


class UnknownRun(Exception):
    """The page asks for a run of which there is no line."""


def records(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def newest(found: Iterable[Record]) -> dict[str, Record]:
    """One of each run, by name."""
    best: dict[str, Record] = {}
    for record in sorted(found, key=lambda record: (record["form"] == "long", record["at"])):
        if record.get("passed"):
            best[record["run"]] = record
    return dict(sorted(best.items()))


def rendered(page: str, kept: dict[str, Record]) -> str:
    """The page with what is between its marks written anew."""

    def body(mark: re.Match[str]) -> str:
        names = [name.strip() for name in mark["names"].split(";")]
        if missing := [name for name in names if name != "all" and name not in kept]:
            raise UnknownRun(f"no line of {', '.join(missing)}; there are {', '.join(kept)}")
        lines = table(kept) if names == ["all"] else ">\n".join(quoted(kept[name]) for name in names)
        return f"<!-- measured: {mark['names']} -->\n{lines}<!-- /measured -->"

    return MARKED.sub(body, page)


def quoted(record: Record) -> str:
    return f"> *Measured*, {record['form']} form: {record['line']}\n"


def table(kept: dict[str, Record]) -> str:
    return HEAD + "".join(
        f"| {record['run']} | {record['form']} | {record['at'][:10]}, {record['load_average'][0]:g} "
        f"| {record['line'].removeprefix(record['run'] + ': ')} |\n"
        for record in kept.values()
    )


def main(paths: list[Path]) -> int:
    """Answers 1 when the newest line of a run says that it failed: then the page still shows an older one."""
    fresh = [record for path in paths for record in records(path)]
    kept = newest([*records(KEPT), *fresh])
    KEPT.write_text("".join(json.dumps(record) + "\n" for record in kept.values()))
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")
    last = {record["run"]: record for record in sorted(fresh, key=lambda record: str(record["at"]))}
    failed = [record["line"] for record in last.values() if record.get("passed") is False]
    for line in failed:
        sys.stderr.write(f"failed, not shown: {line}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]] or [results_file()]))
