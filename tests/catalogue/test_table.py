"""docs/failure-modes.md says what is true: every case has a test that exists or a reason, and quoted words are ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "failure-modes.md").read_text(encoding="utf-8")
CASES = [f"A-{number:02}" for number in range(1, 96)]
ROW = re.compile(r"^\| (A-\d\d) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
ROWS = {case: (fault, tests, result) for case, fault, tests, result in ROW.findall(PAGE)}
NODE = re.compile(r"\[([\w/]+\.py)::(test_\w+)\]\(\.\./tests/([\w/]+\.py)\)")
QUOTED = re.compile(r'"([^"]+)"')
FOREIGN = {
    "passes",
    "Worst wait",
    "database away",
    "no answer",
    "A worker is killed",
    "No space left on device",
    "too many clients already",
    "cannot execute … in a read-only transaction",
}
"""Quoted words of PostgreSQL, of the page itself, and of people."""
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for package in ("pgq_core", "pgq_tui") for path in (ROOT / package).rglob("*.py")
)
SOURCES += "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "pgq_core").rglob("*.sql"))


def test_every_case_has_one_row() -> None:
    assert list(ROWS) == CASES
    assert len(ROW.findall(PAGE)) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_each_named_test_exists_and_a_row_without_one_says_why(case: str) -> None:
    _, tests, result = ROWS[case]
    named = NODE.findall(tests)

    if not named:
        assert tests == "-"
        assert result.startswith(("not built", "does not apply"))
    for path, name, linked in named:
        assert path == linked
        source = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"


def test_quoted_words_are_those_of_the_program() -> None:
    text = PAGE.partition("\n## Faults seen")[0]
    quotes = {" ".join(quote.split()) for quote in QUOTED.findall(text)} - FOREIGN
    # Without the breaks of long literals; what is put into them, and the parts before a colon, are looked for alone.
    sources = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
    unknown = [
        quote
        for quote in sorted(quotes)
        for part in re.split(r"…|SIG[A-Z]+|: ", quote)
        if len(part.strip()) > 3 and part.strip() not in sources
    ]

    assert unknown == []


def test_named_events_are_logged() -> None:
    text = PAGE.partition("\n## Faults seen")[0]
    events = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text))
    settings = {"max_connections", "synchronous_standby_names", "max_prepared_statements"}

    assert sorted(word for word in events - settings if word not in SOURCES) == []


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
