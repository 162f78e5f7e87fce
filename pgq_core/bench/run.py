"""One run of the benchmark: the scenarios asked for, one after the other, their variants interleaved round by round."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

from rich.console import Console

from pgq_core.bench.bench import Bench
from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.machine import this_machine
from pgq_core.bench.options import BenchOptions
from pgq_core.bench.progress import bench_progress
from pgq_core.bench.result import Conditions, Measurement, Report, ScenarioResult, VariantResult
from pgq_core.bench.scenarios import SCENARIOS, Scenario
from pgq_core.bench.server import BenchServer, bench_server


def run_bench(
    options: BenchOptions, words: Console, on_result: Callable[[Conditions, ScenarioResult], None] = lambda *_: None
) -> Report:
    """Runs everything; progress goes to `words`, each scenario to `on_result` when it is over.

    A measurement that fails is told of in its result and does not end the others. Raises DatabaseUnavailable or another
    error of ours when the server cannot be used. The databases it makes are gone afterwards, also after Ctrl-C.
    """
    load = os.getloadavg()[0]
    with bench_server(options.dsn) as server, bench_progress(words) as progress:
        conditions = _conditions(server, load)
        bench = Bench(options, server, progress)
        scenarios = [(name, SCENARIOS[name](bench)) for name in options.scenarios]
        progress.expect(sum(_rounds(scenario) * len(scenario.variants) for _, scenario in scenarios))
        results = []
        for name, scenario in scenarios:
            results.append(_run(name, scenario))
            on_result(conditions, results[-1])
        return Report(conditions, tuple(results))


def _run(name: str, scenario: Scenario) -> ScenarioResult:
    measured: dict[str, list[Measurement]] = {variant: [] for variant in scenario.variants}
    failures = []
    for number in range(_rounds(scenario)):
        # Forth and back: what changes with time (a warm cache, a full disk) then falls on no variant alone.
        for variant in scenario.variants if number % 2 == 0 else reversed(scenario.variants):
            scenario.bench.progress.step(f"{name}, round {number + 1}, {variant}")
            try:
                measured[variant].append(scenario.measure(variant))
            except BenchFailed as error:
                failures.append(f"round {number + 1}, {variant}: {error}")
    variants = tuple(VariantResult(variant, tuple(rounds)) for variant, rounds in measured.items())
    return ScenarioResult(name, scenario.about, _compared(scenario, variants), tuple(failures))


def _rounds(scenario: Scenario) -> int:
    return scenario.options.rounds or scenario.rounds


def _compared(scenario: Scenario, variants: tuple[VariantResult, ...]) -> tuple[VariantResult, ...]:
    """With each later variant's ratio to the base, round by round: rounds side by side saw the same machine."""
    comparison = scenario.comparison
    if comparison is None:
        return variants
    bases = variants[comparison.base].values(comparison.metric)
    compared = []
    for number, variant in enumerate(variants):
        rounds = list(variant.rounds)
        if number > comparison.base:
            for place, (round_, base) in enumerate(zip(variant.rounds, bases, strict=False)):
                if comparison.metric in round_.values and base:
                    ratio = {comparison.ratio: round_.values[comparison.metric] / base}
                    rounds[place] = replace(round_, values={**round_.values, **ratio})
        compared.append(replace(variant, rounds=tuple(rounds)))
    return tuple(compared)


def _conditions(server: BenchServer, load: float) -> Conditions:
    return Conditions(
        taken_at=datetime.now(UTC).replace(microsecond=0),
        program=f"pgq-tui {version('pgq-tui')}",
        machine=this_machine(),
        server=server.settings,
        load=load,
    )
