"""How the inner loops of a process do: each shows how long ago its last good turn was, and how long that may be."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pgq_core.domain.job import JSON
from pgq_core.domain.text import storable

SEVERAL_PERIODS: Final = 3
_ERROR_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class LoopHealth:
    """One loop. `age`: seconds since its last good turn; above `limit` seconds it has stopped turning."""

    name: str
    age: float
    limit: float
    error: str | None = None
    """Why its latest turn was no good one."""

    @property
    def is_stalled(self) -> bool:
        return self.age > self.limit

    def describe(self) -> str:
        """
        >>> LoopHealth("claim", 95.2, 30.0, "no answer").describe()
        'claim has not turned for 95 s (limit 30 s): no answer'
        """
        words = f"{self.name} has not turned for {self.age:.0f} s (limit {self.limit:g} s)"
        return f"{words}: {self.error}" if self.error else words


def turn_limit(interval: float, *, least: float) -> float:
    """Seconds after which a loop that turns every `interval` seconds counts as stalled.

    >>> turn_limit(5.0, least=30.0), turn_limit(3600.0, least=30.0)
    (30.0, 10800.0)
    """
    return max(SEVERAL_PERIODS * interval, least)


def encode_loops(loops: Iterable[LoopHealth]) -> str | None:
    """JSON text for a beat; None when there is nothing to say.

    >>> encode_loops([LoopHealth("claim", 0.21, 30.0)])
    '{"claim": {"age": 0.2, "limit": 30.0}}'
    """
    found = {loop.name: _facts(loop) for loop in loops}
    return json.dumps(found) if found else None


def _facts(loop: LoopHealth) -> dict[str, object]:
    facts: dict[str, object] = {"age": round(loop.age, 1), "limit": round(loop.limit, 3)}
    if loop.error:
        facts["error"] = storable(loop.error, limit=_ERROR_LIMIT)
    return facts


def decode_loops(value: JSON, *, since: float) -> tuple[LoopHealth, ...]:
    """What a beat said `since` seconds ago, grown by that time. What cannot be read is left out.

    >>> decode_loops({"claim": {"age": 0.2, "limit": 30}, "odd": 1}, since=2.0)
    (LoopHealth(name='claim', age=2.2, limit=30.0, error=None),)
    """
    if not isinstance(value, dict):
        return ()
    return tuple(loop for name, facts in value.items() if (loop := _loop(str(name), facts, since)) is not None)


def _loop(name: str, facts: JSON, since: float) -> LoopHealth | None:
    try:
        error = facts.get("error")
        age = max(float(facts["age"]), 0.0) + max(since, 0.0)
        return LoopHealth(name, age, float(facts["limit"]), str(error) if error else None)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
