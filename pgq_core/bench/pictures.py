"""A benchmark's report as one picture: the main figure of each scenario, and what changed over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgq_core.bench.metrics import BY_NAME
from pgq_core.bench.result import Points, Report, ScenarioResult
from pgq_core.bench.svg import Bar, BarPanel, Line, LinePanel, Panel, picture

_BARS: Final = (
    "rate",
    "start_p99",
    "commit_start_p50",
    "commit_start_p99",
    "late_p99",
    "call_p50",
    "call_p99",
    "tick_p99",
)
_LINES: Final = (
    ("throughput", "jobs/s", 1.0),
    ("start_p50", "enqueue to start, p50, ms", 1000.0),
    ("start_p99", "enqueue to start, p99, ms", 1000.0),
    ("backlog", "jobs that are due and have not started", 1.0),
)


def draw(report: Report) -> str:
    """SVG text."""
    panels = [panel for result in report.scenarios for panel in _panels(result)]
    machine, server = report.conditions.machine, report.conditions.server
    subtitle = f"{report.conditions.taken_at:%Y-%m-%d}, PostgreSQL {server.get('server_version', '?')}, {machine}"
    return picture(f"{report.conditions.program} bench", subtitle, panels)


def _panels(result: ScenarioResult) -> Iterator[Panel]:
    for name in _BARS:
        metric = BY_NAME[name]
        bars = [Bar(v.variant, spread) for v in result.variants if (spread := v.spread(metric)) is not None]
        # One bar compares with nothing; in a drain the wait is the age of the backlog.
        is_worth_a_panel = name == "rate" or (len(bars) > 1 and not (name == "start_p99" and _drains(result)))
        if bars and is_worth_a_panel:
            yield BarPanel(f"{result.scenario}: {metric.label}, {metric.unit}", bars)
    for name, words, scale in _LINES:
        lines = [
            Line(variant.variant, _scaled(points, scale))
            for variant in result.variants
            if variant.rounds and len(points := variant.rounds[0].series.get(name, ())) > 2  # noqa: PLR2004 - a line
        ]
        if lines:
            yield LinePanel(f"{result.scenario}: {words}", lines)


def _drains(result: ScenarioResult) -> bool:
    return any(variant.values("rate") for variant in result.variants)


def _scaled(points: Points, scale: float) -> Points:
    return [(x, y * scale) for x, y in points]
