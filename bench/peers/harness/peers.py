"""A peer: its adapter, run by the peer's own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).parents[1] / "adapters"
_CALL_SECONDS = 900
_LAST_WORDS = 3000


class PeerFailed(Exception):
    """One peer could not do what it was asked to; the others go on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of peers.json, and what the command line says on top."""

    name: str
    adapter: str
    environment: str | None
    options: dict[str, Any]
    scale: float | None = None
    steps: tuple[str, ...] | None = None

    @classmethod
    def read(cls, file: Path) -> dict[str, Entry]:
        return {
            name: cls(
                name=name,
                adapter=values["adapter"],
                environment=values.get("environment"),
                options=values.get("options", {}),
                scale=values.get("scale"),
                steps=tuple(values["steps"]) if "steps" in values else None,
            )
            for name, values in json.loads(file.read_text()).items()
        }


class Peer:
    """An entry whose adapter answers. Raises PeerFailed when it does not."""

    def __init__(self, entry: Entry, environments: Path) -> None:
        self.name = entry.name
        self.environment = {**_clean_environment(), "PYTHONPATH": str(ADAPTERS), "PYTHONUNBUFFERED": "1"}
        self._options = [f"--opt={name}={json.dumps(value)}" for name, value in entry.options.items()]
        self.command = self._interpreter(entry, environments)
        self.about: dict[str, Any] = self.call("describe")
        self.scale: float = entry.scale if entry.scale is not None else self.about["scale"]
        self.steps = entry.steps or tuple(self.about["steps"])

    def work_command(self, *arguments: str) -> list[str]:
        return [*self.command, "work", *arguments, *self._spread_options()]

    def call(self, operation: str, *arguments: object) -> dict[str, Any]:
        command = [*self.command, operation, *map(str, arguments), *self._spread_options()]
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=_CALL_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerFailed(f"{self.name} {operation}: {error}") from error
        if done.returncode != 0:
            words = (done.stdout + done.stderr)[-_LAST_WORDS:]
            raise PeerFailed(f"{self.name} {operation} ended with code {done.returncode}: {words}")
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return answer

    def _interpreter(self, entry: Entry, environments: Path) -> list[str]:
        script = str(ADAPTERS / entry.adapter)
        if entry.environment is None:
            return [sys.executable, script]
        home = environments / entry.environment
        if not home.is_dir():
            raise PeerFailed(f"{entry.name}: {home} is missing; bench/peers/setup.sh {entry.environment} makes it")
        if not script.endswith(".mjs"):
            return [str(home / "bin" / "python"), script]
        self.environment["NODE_PEERS"] = str(home)
        own_node = home / "node_modules" / ".bin" / "node"
        return [str(own_node) if own_node.exists() else "node", script]

    def _spread_options(self) -> list[str]:
        """`--opt KEY=VALUE` as two words: the Node side knows no other form."""
        return [word for option in self._options for word in option.split("=", 1)]


def _clean_environment() -> dict[str, str]:
    """Without what the caller's environment says about databases and queues, ours or others'."""
    names = ("PG", "PGQ_", "DATABASE_URL", "QUEUE", "PROCRASTINATE_", "OBAN_", "AWA_", "CHANCY_")
    return {name: value for name, value in os.environ.items() if not name.startswith(names)}
