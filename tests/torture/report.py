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


def results_file() -> Path:
    return Path(os.environ.get(RESULTS_VARIABLE, RESULTS))


def published() -> list[str]:
    """All lines so far."""
    path = results_file()
    return [json.loads(record)["line"] for record in path.read_text().splitlines()] if path.exists() else []


def publish(report: RunReport, *, form: str) -> None:
    """Appends to the results, with what the machine was doing meanwhile."""
    path = results_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": os.cpu_count(), "load_average": [round(value, 1) for value in os.getloadavg()]}
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "form": form,
        **machine,
        "line": report.line(),
        **asdict(report),
    }
    with path.open("a") as results:
        results.write(json.dumps(record) + "\n")


def _shown(value: float | str) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
