"""The scenarios of the benchmark, one file each."""

from __future__ import annotations

from pgq_core.bench.options import ScenarioName
from pgq_core.bench.scenarios.backlog import Backlog
from pgq_core.bench.scenarios.console import Console
from pgq_core.bench.scenarios.drain import Drain
from pgq_core.bench.scenarios.enqueue import Enqueue
from pgq_core.bench.scenarios.future import Future
from pgq_core.bench.scenarios.held_snapshot import HeldSnapshot
from pgq_core.bench.scenarios.latency import Latency
from pgq_core.bench.scenarios.scenario import Scenario
from pgq_core.bench.scenarios.steady import Steady

SCENARIOS: dict[ScenarioName, type[Scenario]] = {
    ScenarioName.DRAIN: Drain,
    ScenarioName.STEADY: Steady,
    ScenarioName.BACKLOG: Backlog,
    ScenarioName.FUTURE: Future,
    ScenarioName.HELD_SNAPSHOT: HeldSnapshot,
    ScenarioName.LATENCY: Latency,
    ScenarioName.ENQUEUE: Enqueue,
    ScenarioName.CONSOLE: Console,
}

__all__ = ["SCENARIOS", "Scenario"]
