#!/usr/bin/env python3
"""Draws the side-by-side results as SVG.

.venv/bin/python bench/plot.py bench/peers/results/latest.json docs/benchmark.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgq_core.bench.figures import Spread
from pgq_core.bench.svg import Bar, BarPanel, picture

OURS = "ours"
LABELS = {
    "ours": "pgq-core",
    "ours-threads": "pgq-core, plain functions",
    "ours-py312": "pgq-core on Python 3.12",
    "bare": "bare psycopg, no queue",
    "graphile": "graphile-worker",
    "graphile-2000": "graphile-worker, 2000",
    "pgboss": "pg-boss",
}
PANELS = (
    ("drain 1w, jobs/s", "Drain with 1 worker, jobs/s", True),
    ("drain 2w, jobs/s", "Drain with 2 workers, jobs/s", True),
    ("drain 8w, jobs/s", "Drain with 8 workers, jobs/s", True),
    ("enqueue in bulk, jobs/s", "Enqueue in bulk, one connection, jobs/s", True),
    ("enqueue one by one, jobs/s", "Enqueue one by one, one connection, jobs/s", True),
    ("pickup p50 from commit, ms", "Commit to start on an idle queue, p50, ms (less is better)", False),
    ("pickup p99 from commit, ms", "Commit to start on an idle queue, p99, ms (less is better)", False),
)
"""Figure, title, whether more is better."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="written by bench/peers/run.py")
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    args.picture.write_text(draw(json.loads(args.results.read_text())), encoding="utf-8")


def draw(results: dict[str, Any]) -> str:
    conditions = results["conditions"]
    subtitle = (
        f"{conditions['taken_at'][:10]}, PostgreSQL {conditions['server']['server_version']}, {conditions['machine']}; "
        f"median of {conditions['rounds']}"
    )
    return picture("PostgreSQL job queues side by side", subtitle, list(_panels(results["peers"])))


def _panels(peers: dict[str, Any]) -> Iterator[BarPanel]:
    for figure, title, more_is_better in PANELS:
        bars = []
        for name, peer in peers.items():
            values = [found[figure] for found in peer["rounds"] if figure in found]
            if values:
                bars.append(Bar(LABELS.get(name, name), Spread.of(values), is_ours=name.startswith(OURS)))
        bars.sort(key=lambda bar: bar.spread.median, reverse=more_is_better)
        if bars:
            yield BarPanel(title, bars)


if __name__ == "__main__":
    main()
