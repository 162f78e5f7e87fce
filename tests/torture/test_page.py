"""The figures in docs/failure-modes.md are those of the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.torture import page
from tests.torture.page import KEPT, PAGE, UnknownRun, main, newest, records, rendered
from tests.torture.report import RunReport, publish, settle


def reported(run: str, at: str, *, form: str = "short", passed: bool = True) -> dict[str, Any]:
    return {"run": run, "at": at, "form": form, "passed": passed, "load_average": [1.0], "line": f"{run}: {at}"}


def test_the_page_shows_what_the_runs_measured_and_nothing_else() -> None:
    kept = newest(records(KEPT))

    assert rendered(PAGE.read_text(encoding="utf-8"), kept) == PAGE.read_text(encoding="utf-8"), (
        "written by hand, or not written anew: python -m tests.torture.page"
    )
    assert all((record["lost"], record["overlaps"]) == (0, 0) for record in kept.values())


def test_the_newest_line_of_the_longest_form_that_passed_counts() -> None:
    kept = newest(
        [
            reported("a", "2026-01-03", passed=False),
            reported("a", "2026-01-02"),
            reported("a", "2026-01-01"),
            reported("b", "2026-01-02"),
            reported("b", "2026-01-01", form="long"),
            reported("c", "2026-01-01", passed=False),
        ]
    )

    assert {run: record["at"] for run, record in kept.items()} == {"a": "2026-01-02", "b": "2026-01-01"}


def test_what_was_between_the_marks_is_replaced() -> None:
    text = "before\n<!-- measured: b; a -->\nby hand\n<!-- /measured -->\nafter\n"
    kept = newest([reported("a", "1"), reported("b", "2")])

    assert rendered(text, kept) == (
        "before\n<!-- measured: b; a -->\n> *Measured*, short form: b: 2\n>\n> *Measured*, short form: a: 1\n"
        "<!-- /measured -->\nafter\n"
    )
    with pytest.raises(UnknownRun, match="no line of b; there are a"):
        rendered(text, newest([reported("a", "1")]))


def test_a_run_that_failed_is_said_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "KEPT", tmp_path / "kept.jsonl")
    monkeypatch.setenv("TORTURE_RESULTS", str(tmp_path / "results.jsonl"))
    page.PAGE.write_text("<!-- measured: all -->\n<!-- /measured -->\n")
    for seconds, passed in ((11.0, True), (22.0, False)):
        publish(RunReport("a", "load", seconds, "faults", 0, 0, 0.5, back_after=1.0), form="short")
        settle(passed=passed)

    assert main([tmp_path / "results.jsonl"]) == 1
    assert "| a | short |" in page.PAGE.read_text()
    assert "load, 11 s, faults, lost 0, overlaps 0, worst wait 0.5 s, 95 % of the rate after 1.0 s |" in (
        page.PAGE.read_text()
    )
    assert capsys.readouterr().err.startswith("failed, not shown: a: load, 22 s")
