"""A benchmark's result as text for a person: conditions first, then one table per scenario."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgq_core.bench.figures import Spread, short
from pgq_core.bench.result import Conditions, ScenarioResult, VariantResult

_SHOWN_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")


def conditions_text(conditions: Conditions) -> Text:
    """Date, machine, versions and settings; a warning where a commit may not survive a crash."""
    server = conditions.server
    version = server.get("server_version", "?")
    lines = [
        f"{conditions.taken_at:%Y-%m-%d %H:%M} UTC · {conditions.program} · PostgreSQL {version}",
        str(conditions.machine),
        " · ".join(f"{name} {server[name]}" for name in _SHOWN_SETTINGS if name in server),
    ]
    text = Text("\n".join(lines))
    if conditions.not_durable:
        settings = ", ".join(f"{name} is {value}" for name, value in conditions.not_durable.items())
        text.append(f"\n{settings}: do not compare this with a server that keeps what it commits", "bold")
    if conditions.load > conditions.machine.cores / 4:
        text.append(f"\nthe machine was busy before the start: load {conditions.load:.1f}", "bold")
    return text


def scenario_table(result: ScenarioResult) -> RenderableType:
    parts: list[RenderableType] = [Text(result.about), _figures(result)]
    if any(round_.wal_by_relation for variant in result.variants for round_ in variant.rounds):
        parts.append(_wal(result))
    parts += [Text(f"failed: {failure}", "bold") for failure in result.failures]
    return Group(*parts)


def _figures(result: ScenarioResult) -> Table:
    table = Table(title=result.scenario, title_justify="left", title_style="bold")
    table.add_column("")
    for variant in result.variants:
        table.add_column(f"{variant.variant}{_of_rounds(variant)}", justify="right")
    table.add_column("unit")
    for metric in result.metrics():
        cells = [str(spread) if (spread := variant.spread(metric)) else "–" for variant in result.variants]
        table.add_row(metric.label, *cells, metric.unit)
    return table


def _wal(result: ScenarioResult) -> Table:
    """Bytes per job, largest first; relations below one byte are left out."""
    table = Table(title="WAL per job by table and index", title_justify="left", title_style="bold")
    table.add_column("")
    for variant in result.variants:
        table.add_column(variant.variant, justify="right")
    table.add_column("unit")
    for name in _relations(result):
        table.add_row(name, *(_median_wal(variant, name) for variant in result.variants), "B")
    return table


def _relations(result: ScenarioResult) -> Iterator[str]:
    sizes: dict[str, float] = {}
    for variant in result.variants:
        for round_ in variant.rounds:
            for name, size in round_.wal_by_relation.items():
                sizes[name] = max(size, sizes.get(name, 0.0))
    yield from (name for name, size in sorted(sizes.items(), key=lambda item: -item[1]) if size >= 1)


def _median_wal(variant: VariantResult, name: str) -> str:
    values = [round_.wal_by_relation.get(name, 0.0) for round_ in variant.rounds]
    return short(Spread.of(values).median) if values else "–"


def _of_rounds(variant: VariantResult) -> str:
    return f"\nmedian of {len(variant.rounds)} rounds" if len(variant.rounds) > 1 else ""
