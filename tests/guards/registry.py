"""Which scenario plays which statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tests.guards.play import Scenario

SCENARIOS: dict[str, list[Scenario]] = defaultdict(list)
"""By statement: plays of one session, inside a transaction that is rolled back."""
MEETINGS: dict[str, list[Scenario]] = defaultdict(list)
"""By statement: plays of several sessions, on committed rows."""
SURVIVORS: dict[tuple[str, str], str] = {}
"""(statement, guard) whose loss no play can show, and why it stands there all the same."""


def plays(*statements: str) -> Callable[[Scenario], Scenario]:
    def register(scenario: Scenario) -> Scenario:
        for statement in statements:
            SCENARIOS[statement].append(scenario)
        return scenario

    return register


def meets(*statements: str) -> Callable[[Scenario], Scenario]:
    def register(scenario: Scenario) -> Scenario:
        for statement in statements:
            MEETINGS[statement].append(scenario)
        return scenario

    return register


def spared(statement: str, *guards: str, because: str) -> None:
    for guard in guards:
        SURVIVORS[statement, guard] = because
