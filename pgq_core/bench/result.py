"""What was measured, and under what conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from pgq_core.bench.figures import Spread
from pgq_core.bench.machine import Machine
from pgq_core.bench.metrics import METRICS, Metric

Points = Sequence[tuple[float, float]]

_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One round of one variant. `values` by metric name; `series` for charts; `wal_by_relation`: bytes per job."""

    values: Mapping[str, float]
    series: Mapping[str, Points] = field(default_factory=dict)
    wal_by_relation: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VariantResult:
    """All rounds of one variant of a scenario."""

    variant: str
    rounds: tuple[Measurement, ...]

    def values(self, metric: str) -> list[float]:
        return [round_.values[metric] for round_ in self.rounds if metric in round_.values]

    def spread(self, metric: Metric) -> Spread | None:
        """In the unit it is shown in; None when no round has it."""
        values = [value * metric.scale for value in self.values(metric.name)]
        return Spread.of(values) if values else None


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    scenario: str
    about: str
    """What exactly was run, in one sentence."""
    variants: tuple[VariantResult, ...]
    failures: tuple[str, ...] = ()
    """Rounds that could not be measured, and why."""

    def metrics(self) -> Iterator[Metric]:
        """Those that any variant has, in reading order."""
        for metric in METRICS:
            if any(variant.values(metric.name) for variant in self.variants):
                yield metric


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a figure depends on."""

    taken_at: datetime
    program: str
    machine: Machine
    server: Mapping[str, str]
    load: float
    """The machine's load average of the last minute, before anything was started."""

    @property
    def not_durable(self) -> dict[str, str]:
        """Settings of the server under which a commit may not survive a crash: figures then are not comparable."""
        found = {name: self.server[name] for name in _DURABLE if name in self.server}
        return {name: value for name, value in found.items() if value != _DURABLE[name]}


@dataclass(frozen=True, slots=True)
class Report:
    conditions: Conditions
    scenarios: tuple[ScenarioResult, ...]

    def write_json(self, path: Path) -> None:
        path.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
