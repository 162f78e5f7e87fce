"""One line per run: what was done, what it cost, what was lost."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS_VARIABLE = "TORTURE_RESULTS"
RESULTS = Path(__file__).parents[2] / "build" / "torture.jsonl"


@dataclass(frozen=True, slots=True)
class RunReport:
    run: str
    load: str
    seconds: float
    faults: str
    lost: int
    overlaps: int
    worst_wait: float
    """Seconds between a job's due time and its first start."""
    back_after: float | None = None
    """Seconds until 95 % of the rate was reached again; None: the run does not ask for it."""
    figures: dict[str, float | int | str] = field(default_factory=dict)
    """What else the run is judged by."""

    def line(self) -> str:
        back = "" if self.back_after is None else f", 95 % of the rate after {self.back_after:.1f} s"
        figures = "".join(f", {name} {_shown(value)}" for name, value in self.figures.items())
        return (
            f"{self.run}: {self.load}, {self.seconds:.0f} s, {self.faults}, lost {self.lost}, "
            f"overlaps {self.overlaps}, worst wait {self.worst_wait:.1f} s{back}{figures}"
        )


_reported: list[tuple[RunReport, str]] = []
"""Of the test that runs now, with its form: whether it passes is known at its end."""


def results_file() -> Path:
    return Path(os.environ.get(RESULTS_VARIABLE, RESULTS))


def published() -> list[str]:
    """All lines so far; a run that did not pass says so."""
    path = results_file()
    if not path.exists():
        return []
    records = [json.loads(record) for record in path.read_text().splitlines()]
    return [record["line"] + ("" if record.get("passed", True) else "  FAILED") for record in records]


def publish(report: RunReport, *, form: str) -> None:
    _reported.append((report, form))


def settle(*, passed: bool) -> None:
    """Appends what the test that has just ended reported, with its verdict and what the machine was doing meanwhile."""
    if not _reported:
        return
    path = results_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": os.cpu_count(), "load_average": [round(value, 1) for value in os.getloadavg()]}
    with path.open("a") as results:
        for report, form in _reported:
            record = {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "form": form,
                "passed": passed,
                **machine,
                "line": report.line(),
                **asdict(report),
            }
            results.write(json.dumps(record) + "\n")
    _reported.clear()


def _shown(value: float | str) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
