"""Results as Markdown for people and JSON for bench/plot.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pgq_core.bench.figures import Spread


class Results:
    """Figures by peer and round, as they come in."""

    def __init__(self, conditions: dict[str, Any]) -> None:
        self.conditions = conditions
        self.peers: dict[str, dict[str, Any]] = {}

    def add_peer(self, name: str, about: dict[str, Any], rounds: int) -> None:
        self.peers[name] = {"about": about, "rounds": [{} for _ in range(rounds)], "errors": []}

    def add(self, name: str, round_number: int, figures: dict[str, float]) -> None:
        self.peers[name]["rounds"][round_number].update(figures)

    def add_error(self, name: str, text: str) -> None:
        self.peers[name]["errors"].append(text)

    @property
    def has_errors(self) -> bool:
        return any(peer["errors"] for peer in self.peers.values())

    def spread(self, name: str, figure: str) -> Spread | None:
        values = [found[figure] for found in self.peers[name]["rounds"] if figure in found]
        return Spread.of(values) if values else None

    def write(self, prefix: Path) -> None:
        """`prefix`.json and `prefix`.md."""
        prefix.parent.mkdir(parents=True, exist_ok=True)
        document = {"conditions": self.conditions, "peers": self.peers}
        prefix.with_name(f"{prefix.name}.json").write_text(json.dumps(document, indent=1) + "\n")
        prefix.with_name(f"{prefix.name}.md").write_text(self.markdown())

    def markdown(self) -> str:
        return "\n".join((*self._conditions(), "", *self._table(), "", *self._entries(), ""))

    def _conditions(self) -> Iterator[str]:
        conditions = self.conditions
        settings = {name: value for name, value in conditions["server"].items() if name != "server_version"}
        yield f"Measured {conditions['taken_at']} on {conditions['machine']}; load {conditions['load']:.1f} before."
        version = conditions["server"]["server_version"]
        yield f"PostgreSQL {version}: {', '.join(f'{name} {value}' for name, value in settings.items())}."
        yield f"{conditions['rounds']} interleaved rounds: median (lowest–highest)."

    def _table(self) -> Iterator[str]:
        yield f"| | {' | '.join(self.peers)} |"
        yield "|---|" + "---:|" * len(self.peers)
        for figure in self._figures():
            cells = (str(spread) if (spread := self.spread(name, figure)) else "–" for name in self.peers)
            yield f"| {figure} | {' | '.join(cells)} |"

    def _figures(self) -> list[str]:
        """In the order in which they were first seen."""
        return list(
            dict.fromkeys(figure for peer in self.peers.values() for found in peer["rounds"] for figure in found)
        )

    def _entries(self) -> Iterator[str]:
        for name, peer in self.peers.items():
            about = peer["about"]
            versions = ", ".join(f"{package} {version}" for package, version in about["versions"].items())
            options = json.dumps(about["options"])
            yield f"- **{name}**: {versions}; {about['runtime']}; options {options}; kept: {about['audit']}."
            if about["notes"]:
                yield f"  Notes: {about['notes']}."
            yield from (f"  FAILED: {error}" for error in peer["errors"])
